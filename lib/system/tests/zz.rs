#[test]
fn zz() {
    for e in std::fs::read_dir("../../examples").unwrap() {
        let p = e.unwrap().path();
        if p.extension().is_none_or(|x| x != "toml") {
            continue;
        }
        let t = std::fs::read_to_string(&p).unwrap();
        let Ok(s) = diapason_system::parse("x", &t) else { continue };
        let d = s.sizes();
        println!("{p:?} {} {d:?}", d.longest_walk());
    }
}
