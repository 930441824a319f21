//! `diapason network`: writes a list of hosts for a shape, with as few bridges as possible.
//!
//! `lib/network` chooses; here the choice becomes the text of a description.

use crate::failure::Failure;
use crate::failure::HOLDS;
use crate::output::say;
use diapason_topology::shapes::{self, Pair};
use diapason_topology::{Cabling, Fewest, Jack, Routes, choose, orient};
use std::fmt::Write;

/// Most hosts of a list.
const HOSTS_MAX: usize = 64;
/// Ports of a controller.
const PORTS_MAX: usize = 15;

/// The request to `network`.
#[derive(Clone, Debug, clap::Args)]
pub struct NetworkRequest {
    #[command(subcommand)]
    shape: Shape,
    /// The description of each host, as the list names it.
    #[arg(long, value_name = "FILE", default_value = "host.toml", global = true)]
    system: String,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Shape {
    /// Hosts in a row.
    Line { hosts: usize },
    /// Hosts in a circle.
    Ring { hosts: usize },
    /// One host, and others around it.
    Star { leaves: usize },
    /// Hosts below each other.
    Tree {
        hosts: usize,
        /// Most hosts directly below one.
        #[arg(long, default_value_t = 2)]
        children: usize,
    },
    /// 2^D hosts: a cable joins two whose numbers differ in one bit.
    Hypercube { dimensions: u32 },
    /// Hosts by name: each word is two names with a colon, such as `left:right`.
    Pairs {
        #[arg(required = true, value_name = "ONE:OTHER")]
        pairs: Vec<String>,
    },
}

/// Names of hosts, and the pairs that are to be joined.
type Wanted = (Vec<String>, Vec<Pair>);

/// Writes a list of hosts to standard output.
///
/// # Errors
/// If there is no such network.
pub fn network(request: &NetworkRequest) -> Result<u8, Failure> {
    say(list(request)?.trim_end());
    Ok(HOLDS)
}

fn list(request: &NetworkRequest) -> Result<String, Failure> {
    let (names, pairs) = wanted(&request.shape)?;
    let hosts = names.len();
    let cabling = choose(hosts, &pairs).map_err(|apart| {
        let title = format!("no way leads from `{}` to `{}`", names[0], names[apart]);
        wrong(&title, "add a pair that joins the two parts")
    })?;
    let is_cube = matches!(request.shape, Shape::Hypercube { .. });
    let text = remarks(&cabling, &names, &pairs, is_cube) + &described(request, &cabling, &names)?;
    Ok(text)
}

fn wrong(title: &str, help: &str) -> Failure {
    Failure::Input(format!("error: {title}\nhelp: {help}"))
}

fn wanted(shape: &Shape) -> Result<Wanted, Failure> {
    let hosts = match shape {
        Shape::Line { hosts } | Shape::Ring { hosts } | Shape::Tree { hosts, .. } => *hosts,
        Shape::Star { leaves } => leaves.saturating_add(1),
        Shape::Hypercube { dimensions } => 1usize.checked_shl(*dimensions).unwrap_or(usize::MAX),
        Shape::Pairs { pairs } => return named(pairs),
    };
    if !(2..=HOSTS_MAX).contains(&hosts) {
        let help = format!("write a number that gives 2 to {HOSTS_MAX} hosts");
        return Err(wrong("so many hosts cannot be listed", &help));
    }
    let pairs = match shape {
        Shape::Line { .. } | Shape::Pairs { .. } => shapes::line(hosts),
        Shape::Ring { .. } => shapes::ring(hosts),
        Shape::Star { .. } => shapes::star(hosts - 1),
        Shape::Tree { children, .. } => shapes::tree(hosts, *children),
        Shape::Hypercube { dimensions } => shapes::hypercube(*dimensions),
    };
    Ok(((0..hosts).map(|host| format!("h{host}")).collect(), pairs))
}

/// Reads pairs such as `left:right`.
fn named(words: &[String]) -> Result<Wanted, Failure> {
    let (mut names, mut pairs) = (Vec::<String>::new(), Vec::<Pair>::new());
    for word in words {
        let ends: Vec<&str> = word.split(':').collect();
        let [one, other] = ends[..] else {
            let title = format!("`{word}` is no pair of hosts");
            return Err(wrong(&title, "write two names with a colon, as in `left:right`"));
        };
        if let Some((title, help)) = [one, other].into_iter().find_map(diapason_system::name_fault)
        {
            return Err(wrong(&format!("`{word}`: {title}"), &help));
        }
        let pair = [one, other].map(|name| {
            let known = names.iter().position(|known| known == name);
            known.unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            })
        });
        if one == other {
            return Err(wrong(&format!("`{word}` joins a host to itself"), "remove it"));
        }
        if pairs.iter().any(|it| it.contains(&pair[0]) && it.contains(&pair[1])) {
            return Err(wrong(&format!("`{word}` is there twice"), "remove one of the two"));
        }
        pairs.push(pair);
    }
    if names.len() > HOSTS_MAX {
        let title = format!("{} hosts, the most is {HOSTS_MAX}", names.len());
        return Err(wrong(&title, "remove some pairs"));
    }
    Ok((names, pairs))
}

/// Returns comments that say what was chosen, and why.
fn remarks(cabling: &Cabling, names: &[String], pairs: &[Pair], is_cube: bool) -> String {
    let (cables, hosts) = (pairs.len(), names.len());
    let debug = cables - cabling.bridges;
    let why = match cabling.fewest {
        Fewest::NoBridge => "no cable needs a bridge".to_owned(),
        Fewest::Capabilities => {
            format!("fewer bridges are impossible: {hosts} hosts have {hosts} debug capabilities")
        }
        Fewest::NoLeader => "fewer bridges are impossible: no host could lead a circle".to_owned(),
    };
    let mut text = format!(
        "# {hosts} hosts, {cables} cables: {debug} debug cables and {} bridges;\n# {why}.\n",
        cabling.bridges
    );
    let two = orient(hosts, pairs, 2).devices.iter().filter(|device| device.is_none()).count();
    if cabling.bridges > 0 {
        let _ = writeln!(text, "# With two device connections a host, {two} would be needed.");
    }
    let topology = &cabling.topology;
    let all = |_: usize| true;
    let (word, routes) = match is_cube.then(|| Routes::e_cube(topology)).flatten() {
        Some(routes) => ("e-cube", routes),
        None => ("shortest", Routes::shortest(topology, all)),
    };
    let (word, routes) = match routes.deadlock() {
        None => (word, routes),
        Some(circle) => {
            let from = circle.iter().map(|lane| names[lane.from].as_str());
            let from = from.collect::<Vec<&str>>().join(", ");
            let _ =
                writeln!(text, "# Shortest routes can deadlock: messages from {from} in a circle.");
            ("up-and-down", Routes::up_down(topology, |_| true))
        }
    };
    let hops = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
    let most = hops.filter_map(|(from, to)| routes.hops(from, to)).max().unwrap_or(0);
    let _ = writeln!(text, "# Routes: {word}, {most} hops at most, free of deadlock.");
    text
}

/// Returns the tables of the list.
fn described(
    request: &NetworkRequest,
    cabling: &Cabling,
    names: &[String],
) -> Result<String, Failure> {
    let mut text = String::new();
    if let Some(leader) = cabling.lists.leader {
        let _ = write!(text, "\n[network]\nleader = \"{}\"\n", names[leader]);
    }
    for name in names {
        let system = &request.system;
        let _ = write!(text, "\n[[host]]\nname = \"{name}\"\nsystem = {system:?}\n");
    }
    let mut ports = vec![0; names.len()];
    let mut port = |jack: Jack| -> Result<String, Failure> {
        let name = &names[jack.host];
        ports[jack.host] += 1;
        if ports[jack.host] > PORTS_MAX {
            let title =
                format!("`{name}` has more cables than the {PORTS_MAX} ports of a controller");
            return Err(wrong(&title, "join fewer hosts to it"));
        }
        Ok(format!("{name}:xhci:{}", ports[jack.host]))
    };
    for edge in &cabling.topology.edges {
        let [one, other] = edge.ends();
        let first = match edge.roles() {
            Some(_) => format!("{}:xhci:debug", names[one.host]),
            None => port(one)?,
        };
        let second = port(other)?;
        let name = format!("{}-{}", names[one.host], names[other.host]);
        let _ =
            write!(text, "\n[[cable]]\nname = \"{name}\"\nends = [\"{first}\", \"{second}\"]\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{NetworkRequest, Shape, list};
    use crate::plan::NetworkPlan;
    use diapason_system::{Description, parse_any};
    use diapason_topology::flaws;

    fn of(shape: Shape) -> Result<String, String> {
        let request = NetworkRequest { shape, system: "host.toml".into() };
        list(&request).map_err(|failure| failure.to_string())
    }

    /// Returns a host with a controller and no program that serves a link.
    fn find(_: &str) -> Result<(String, String), String> {
        let text = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n[[device]]\n\
                    name = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n";
        Ok(("host.toml".into(), text.into()))
    }

    #[test]
    fn every_list_is_sound_and_its_network_forms() {
        let pairs = ["a:b", "b:c", "c:a", "d:a", "e:b", "f:c"].map(String::from).to_vec();
        let shapes = [
            Shape::Line { hosts: 2 },
            Shape::Ring { hosts: 4 },
            Shape::Star { leaves: 15 },
            Shape::Tree { hosts: 64, children: 3 },
            Shape::Hypercube { dimensions: 3 },
            Shape::Hypercube { dimensions: 4 },
            Shape::Hypercube { dimensions: 6 },
            Shape::Pairs { pairs },
        ];
        for shape in shapes {
            let text = of(shape).unwrap();
            let described = parse_any("net.toml", &text, find).unwrap();
            let Description::Several(hosts) = described else { panic!("{text}") };
            let plan = NetworkPlan::of(&hosts);
            assert_eq!(flaws(&plan.topology, &plan.lists), [], "{text}");
        }
    }

    #[test]
    fn the_hypercube_has_the_cables_of_the_paper() {
        let text = of(Shape::Hypercube { dimensions: 3 }).unwrap();
        let first = "# 8 hosts, 12 cables: 8 debug cables and 4 bridges;\n";
        assert!(text.starts_with(first), "{text}");
        assert_eq!(text.matches(":xhci:debug").count(), 8);
        assert!(text.contains("# Routes: e-cube, 3 hops at most, free of deadlock.\n"), "{text}");
        let text = of(Shape::Hypercube { dimensions: 4 }).unwrap();
        assert!(text.contains("# With two device connections a host, 0 would be needed.\n"));
    }

    #[test]
    fn nonsense_is_refused_with_a_remedy() {
        let pairs = |words: &[&str]| {
            of(Shape::Pairs { pairs: words.iter().map(|word| (*word).to_owned()).collect() })
        };
        let wrong = [
            (of(Shape::Ring { hosts: 65 }), "so many hosts cannot be listed"),
            (of(Shape::Ring { hosts: 0 }), "so many hosts cannot be listed"),
            (of(Shape::Hypercube { dimensions: 200 }), "so many hosts cannot be listed"),
            (of(Shape::Star { leaves: 16 }), "`h0` has more cables than the 15 ports"),
            (pairs(&["a"]), "`a` is no pair of hosts"),
            (pairs(&["a:a"]), "`a:a` joins a host to itself"),
            (pairs(&["a:b", "b:a"]), "`b:a` is there twice"),
            (pairs(&["a:b", "c:d"]), "no way leads from `a` to `c`"),
            (pairs(&["A:b"]), "`A:b`: `A` cannot be in a name"),
        ];
        for (found, title) in wrong {
            let said = found.unwrap_err();
            assert!(said.contains(title) && said.contains("\nhelp: "), "{said}");
        }
    }
}
