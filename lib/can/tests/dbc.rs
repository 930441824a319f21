//! DBC files: what they say about frames, what is refused, and that values come back.

use diapason_can::dbc::{
    BitRange, ByteOrder, Dbc, DbcMessage, DbcTrouble, Decimal, EncodeRefusal, Selection, Signal,
    Value, renumbered,
};
use diapason_can::frame::{extended, standard};
use diapason_random::Random;

const FILE: &str = r#"VERSION "1.0"

NS_ :
	NS_DESC_
	CM_
	VAL_
	SG_MUL_VAL_

BS_:
BU_: ECU DASH
VAL_TABLE_ OnOff 1 "on" 0 "off" ;

BO_ 496 Example: 8 ECU
 SG_ Temperature : 0|12@0- (0.01,250) [229.52|270.47] "degK" DASH,ECU
 SG_ Radius : 6|6@0+ (0.1,0) [0|5] "m" DASH
 SG_ Enable : 7|1@0+ (1,0) [-1.7E+308|1.7E+308] "-" DASH

BO_ 2566857713 Modes: 8 ECU
 SG_ Mode M : 0|4@1+ (1,0) [0|15] "" DASH
 SG_ Speed m0 : 8|16@1+ (1E-3,0) [0|0] "m/s" DASH
 SG_ Torque m1 : 8|16@1- (0.5,-10) [0|0] "Nm" DASH
 SG_ Inner m2M : 8|8@1+ (1,0) [0|0] "" DASH
 SG_ Deep m7 : 16|8@1+ (1,0) [0|0] "" DASH
 SG_ Ratio : 32|32@1- (1,0) [0|0] "" DASH

BO_ 3221225472 VECTOR__INDEPENDENT_SIG_MSG: 0 Vector__XXX
 SG_ Lost : 0|8@1+ (1,0) [0|0] "" Vector__XXX

CM_ SG_ 496 Enable "one
BO_ in a text of two lines, with a \" quote";
BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
VAL_ 496 Enable 1 "on" 0 "off" ;
VAL_ 2566857713 Torque -1 "fault" ;
VAL_ SomeVariable 0 "x" ;
SIG_VALTYPE_ 2566857713 Ratio : 1;
SG_MUL_VAL_ 2566857713 Deep Inner 7-7, 9-10;
"#;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

/// Name, value and label of each reading.
fn read(message: &DbcMessage, data: &[u8]) -> Vec<String> {
    let readings = message.decode(data).into_iter().map(|reading| {
        let value = match reading.value {
            Value::Exact(value) => value.to_string(),
            Value::Single(bits) => format!("{bits:08x}"),
            Value::Double(bits) => format!("{bits:016x}"),
        };
        let label = reading.label.map_or(String::new(), |label| format!(" {label}"));
        format!("{} {value}{label}", reading.signal.name)
    });
    readings.collect()
}

#[test]
fn frames_are_read_as_the_file_says() {
    let dbc = Dbc::parse(FILE).unwrap();
    let example = dbc.message(standard(496).unwrap()).unwrap();
    let data = [0xc0, 0x06, 0xe0, 0, 0, 0, 0, 0];
    assert_eq!(read(example, &data), ["Temperature 250.55", "Radius 3.2", "Enable 1 on"]);
    let values = [("Temperature", "250.55"), ("Radius", "3.2"), ("Enable", "1")];
    let values = values.map(|(name, value)| (name, decimal(value)));
    assert_eq!(example.encode(&values).unwrap(), data);
    // The temperature is not in a frame that was cut.
    assert_eq!(read(example, &data[..1]), ["Radius 3.2", "Enable 1 on"]);
    assert_eq!(read(example, &[0xff; 8])[0], "Temperature 249.99");
}

#[test]
fn signals_are_there_when_they_are_selected() {
    let dbc = Dbc::parse(FILE).unwrap();
    let modes = dbc.message(extended(2_566_857_713 - (1 << 31)).unwrap()).unwrap();
    let data = |mode, a, b| [mode, a, b, 0, 0, 0, 0x80, 0x3f];
    let ratio = "Ratio 3f800000";
    assert_eq!(read(modes, &data(0, 0xe8, 3)), ["Mode 0", "Speed 1", ratio]);
    assert_eq!(read(modes, &data(1, 0xff, 0xff)), ["Mode 1", "Torque -10.5 fault", ratio]);
    assert_eq!(read(modes, &data(2, 10, 5)), ["Mode 2", "Inner 10", "Deep 5", ratio]);
    assert_eq!(read(modes, &data(2, 8, 5)), ["Mode 2", "Inner 8", ratio]);
    assert_eq!(read(modes, &data(1, 7, 0)), ["Mode 1", "Torque -6.5", ratio]);
    let refused = modes.encode(&[("Ratio", decimal("1"))]);
    assert_eq!(refused, Err(EncodeRefusal::Float("Ratio".into())));
}

/// Returns the line and the words of a refusal.
fn refusal(text: &str) -> String {
    Dbc::parse(text).unwrap_err().to_string()
}

#[test]
fn every_broken_line_is_named_with_what_to_do() {
    let message = "BO_ 1 A: 1 X\n";
    let signal = "SG_ S : 0|8@1+ (1,0) [0|0] \"\" X\n";
    let cases = [
        ("BO_ one A: 1 X", "line 1: the message's number is expected at `one A: 1 X`"),
        ("\n\nBO_ 1 A 1 X", "line 3: `:` is expected at `1 X`; it should look like `BO_ 256"),
        ("BO_ 1 A: X", "line 1: the message's size in bytes is expected at `X`"),
        ("BO_ 4096 A: 1 X", "line 1: 4096 is no identifier"),
        ("SG_ S : 0|8@1+ (1,0) [0|0] \"\" X", "line 1: a signal without a message"),
        ("BO_ 1 A: 1 X\nBO_ 1 B: 1 X", "line 2: `1` is there twice"),
        ("CM_ \"never ends\n\nBO_ 1 A: 1 X", "line 1: a text begins and does not end"),
        ("VAL_ 5 S 0 \"x\" ;", "line 1: there is no message 5 above"),
    ];
    for (text, expected) in cases {
        assert!(refusal(text).starts_with(expected), "{text}: {}", refusal(text));
    }
    let cases = [
        ("SG_ S : 0|0@1+ (1,0) [0|0] \"\" X", "a signal has 1 to 64 bits, not 0"),
        ("SG_ S : 0|65@1+ (1,0) [0|0] \"\" X", "a signal has 1 to 64 bits, not 65"),
        ("SG_ S : 4|8@1+ (1,0) [0|0] \"\" X", "the signal needs 2 bytes and its message has 1"),
        ("SG_ S : 0|8@2+ (1,0) [0|0] \"\" X", "1 (Intel) or 0 (Motorola) is expected at `2+"),
        ("SG_ S : 0|8@1 (1,0) [0|0] \"\" X", "`+` (unsigned) or `-` (signed) is expected"),
        ("SG_ S : 0|8@1+ (0,0) [0|0] \"\" X", "a scale of 0"),
        ("SG_ S : 0|8@1+ (x,0) [0|0] \"\" X", "the scale, a number of at most 18 digits is"),
        ("SG_ S : 0|8@1+ (1,0) [0|] \"\" X", "the greatest value is expected at `] \"\" X`"),
        ("SG_ S : 0|8@1+ (1E-30,1E18) [0|0] \"\" X", "scale and offset need too many digits"),
        ("SG_ S : 0|8@1+ (1,0) [0|0]", "the unit in quotes is expected at its end"),
        ("SG_ S x : 0|8@1+ (1,0) [0|0] \"\" X", "`M`, `m` with a number, or `:` is expected"),
        ("SG_ S m1 : 0|8@1+ (1,0) [0|0] \"\" X", "a signal is selected by one that is marked"),
        (
            "SG_ S : 0|8@1+ (1,0) [0|0] \"\" X\nSG_ S : 0|8@1+ (1,0) [0|0] \"\" X",
            "`S` is there twice",
        ),
    ];
    for (line, expected) in cases {
        let words = refusal(&format!("{message}{line}"));
        let words = words.split_once(": ").unwrap().1;
        assert!(words.starts_with(expected), "{line}: {words}");
    }
    let cases = [
        ("VAL_ 1 T 0 \"x\" ;", "the message has no signal `T`"),
        ("VAL_ 1 S 0 \"x\"", "a value, or `;` at the end is expected at its end"),
        ("VAL_ 1 S 0 x ;", "a text in quotes is expected at `x ;`"),
        ("SIG_VALTYPE_ 1 S : 1;", "a floating-point signal has 32 bits"),
        ("SG_MUL_VAL_ 1 S S 1;", "`-` is expected at `;`"),
        ("SG_MUL_VAL_ 1 S T 1-1;", "the message has no signal `T`"),
    ];
    for (line, expected) in cases {
        let words = refusal(&format!("{message}{signal}{line}"));
        assert!(words.starts_with("line 3: ") && words.contains(expected), "{line}: {words}");
    }
}

#[test]
fn selections_in_a_circle_select_nothing() {
    let text = "BO_ 1 A: 1 X\nSG_ S : 0|4@1+ (1,0) [0|0] \"\" X\n\
                SG_ T : 4|4@1+ (1,0) [0|0] \"\" X\nSG_MUL_VAL_ 1 S T 0-15;\n\
                SG_MUL_VAL_ 1 T S 0-15;";
    assert!(Dbc::parse(text).unwrap().messages[0].decode(&[0]).is_empty());
}

#[test]
fn decimals_are_exact() {
    for (text, shown) in [
        ("0", "0"),
        ("-0.0", "0"),
        ("007.50", "7.5"),
        ("-.5", "-0.5"),
        ("1e3", "1000"),
        ("3.0517578125E-05", "0.000030517578125"),
        ("123456789012345678", "123456789012345678"),
        ("1000000000000000000", "1000000000000000000"),
    ] {
        assert_eq!(decimal(text).to_string(), shown);
        assert_eq!(decimal(shown), decimal(text), "written and read again");
    }
    for text in ["", "-", ".", "1.2.3", "1e", "e5", "1234567890123456789", "1e-40", "1e40", "0x1"] {
        assert_eq!(Decimal::parse(text), None, "{text}");
    }
    assert_eq!(decimal("0.1").plus(decimal("0.2")), Some(decimal("0.3")));
    assert_eq!(decimal("0.3").over(decimal("0.1")), Some(3));
    assert_eq!(decimal("0.35").over(decimal("0.1")), None);
}

/// Bits by writing all of them side by side as text, as the figures in manuals do.
fn slow_get(place: BitRange, data: &[u8]) -> u64 {
    let length = usize::from(place.length);
    let digits: String = match place.order {
        ByteOrder::Big => {
            let all: String = data.iter().map(|byte| format!("{byte:08b}")).collect();
            let left = usize::from(place.start / 8 * 8 + (7 - place.start % 8));
            all[left..left + length].into()
        }
        ByteOrder::Little => {
            let all: String = data.iter().rev().map(|byte| format!("{byte:08b}")).collect();
            let right = all.len() - usize::from(place.start);
            all[right - length..right].into()
        }
    };
    u64::from_str_radix(&digits, 2).unwrap()
}

#[test]
fn bits_are_where_the_figures_have_them() {
    let mut random = Random::new(3);
    for _ in 0..20_000 {
        let order = random.pick(&[ByteOrder::Big, ByteOrder::Little]);
        let place = BitRange {
            start: random.within(0, 63) as u16,
            length: random.within(1, 64) as u8,
            order,
        };
        let mut data = random.bits().to_le_bytes();
        if place.bytes() > 8 {
            assert_eq!(place.get(&data), None);
            continue;
        }
        assert_eq!(place.get(&data), Some(slow_get(place, &data)), "{place:?} {data:02x?}");
        let (before, raw) = (data, random.bits());
        place.put(&mut data, raw);
        assert_eq!(place.get(&data), Some(raw << (64 - place.length) >> (64 - place.length)));
        let touched: u32 = (0..8).map(|i| (before[i] ^ data[i]).count_ones()).sum();
        assert!(touched <= u32::from(place.length));
    }
}

/// Returns a message as text with signals that do not overlap, some of them selected.
fn random_message(random: &mut Random) -> String {
    let mut free = [true; 64];
    let mut text = String::from("BO_ 256 M: 8 X\n");
    for index in 0..random.within(1, 12) {
        let order = random.pick(&[ByteOrder::Big, ByteOrder::Little]);
        let start = random.within(0, 63) as u16;
        let place = BitRange { start, length: random.within(1, 20) as u8, order };
        let mut bits = place.bits();
        if place.bytes() > 8 || !bits.all(|bit| free[bit as usize]) {
            continue;
        }
        place.bits().for_each(|bit| free[bit as usize] = false);
        let order = if order == ByteOrder::Big { 0 } else { 1 };
        let sign = random.pick(&['+', '-']);
        let scale =
            format!("{}{}E-{}", random.pick(&["", "-"]), random.within(1, 9_999), random.below(9));
        let offset = Decimal::new(i128::from(random.bits() as i32), random.below(6) as u8);
        text += &format!(
            "SG_ S{index} : {start}|{}@{order}{sign} ({scale},{offset}) [0|0] \"\" X\n",
            place.length
        );
    }
    text
}

#[test]
fn what_is_encoded_is_decoded() {
    let mut random = Random::new(5);
    for _ in 0..2_000 {
        let text = random_message(&mut random);
        let dbc = Dbc::parse(&text).unwrap();
        let message = &dbc.messages[0];
        let value = |signal: &Signal, random: &mut Random| {
            let [least, most] = signal.extremes();
            let raw = least + i128::from(random.bits()) % (most - least + 1);
            signal.value(raw).unwrap()
        };
        let values: Vec<(&str, Decimal)> = message
            .signals
            .iter()
            .map(|signal| (signal.name.as_str(), value(signal, &mut random)))
            .collect();
        let data = message.encode(&values).unwrap();
        let read: Vec<(&str, Decimal)> = message
            .decode(&data)
            .into_iter()
            .map(|reading| match reading.value {
                Value::Exact(value) => (reading.signal.name.as_str(), value),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(read, values, "{text}");
    }
}

#[test]
fn values_that_a_signal_cannot_have_are_refused() {
    let dbc = Dbc::parse(FILE).unwrap();
    let refused = |name: &str, value: &str| dbc.messages[0].encode(&[(name, decimal(value))]);
    assert_eq!(refused("Radius", "0.15"), Err(EncodeRefusal::Between("Radius".into())));
    assert_eq!(refused("Radius", "6.4"), Err(EncodeRefusal::TooLarge("Radius".into())));
    assert_eq!(refused("Radius", "-0.1"), Err(EncodeRefusal::TooLarge("Radius".into())));
    assert_eq!(refused("Nothing", "1"), Err(EncodeRefusal::NoSignal("Nothing".into())));
}

#[test]
fn damaged_files_are_read_or_refused() {
    let mut random = Random::new(7);
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut bytes = FILE.as_bytes().to_vec();
        for _ in 0..random.within(1, 4) {
            let at = random.index(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.bits() as u8,
                1 => bytes[at] = random.pick(b"0123456789|@+-()[],;:\"mM \n"),
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[random.index(bytes.len())]),
            }
        }
        match Dbc::parse(&String::from_utf8_lossy(&bytes)) {
            Ok(dbc) => {
                for message in &dbc.messages {
                    let data = random.bits().to_le_bytes();
                    let most = message.signals.len();
                    assert!(message.decode(&data[..random.index(9)]).len() <= most);
                }
            }
            Err(error) => {
                refused += 1;
                assert!((1..=50).contains(&error.line) && error.to_string().len() < 300);
            }
        }
    }
    assert!(refused > 5_000, "{refused}");
}

#[test]
fn a_selection_may_have_ranges() {
    let dbc = Dbc::parse(FILE).unwrap();
    let deep = dbc.messages[1].signals.iter().find(|signal| signal.name == "Deep").unwrap();
    assert_eq!(deep.when, Some(Selection { by: 3, ranges: vec![(7, 7), (9, 10)] }));
    let wrong = FILE.replace("SG_MUL_VAL_ 2566857713 Deep Inner 7-7, 9-10;", "");
    assert!(Dbc::parse(&wrong).is_ok(), "with one plain M it is selected by that");
    let none = FILE.replace("Mode M", "Mode");
    assert_eq!(Dbc::parse(&none).unwrap_err().what, DbcTrouble::Selector(0));
}

const CYCLES: &str = "BO_ 256 Engine: 8 ECU\n\
    SG_ Gear : 16|8@1+ (1,0) [0|5] \"\" X\n\
    BO_ 2147484160 Wide: 4 Vector__XXX\n\
    BO_ 300 Lamp: 1 BODY\n\
    CM_ BO_ 256 \"BO_ 256 is the engine\nBO_ 300 is not\";\n\
    BA_DEF_ BO_ \"GenMsgCycleTime\" INT 0 65535;\n\
    BA_DEF_DEF_ \"GenMsgCycleTime\" 100;\n\
    BA_ \"GenMsgCycleTime\" BO_ 256 10;\n\
    BA_ \"GenMsgCycleTime\" BO_ 300 0;\n\
    BA_ \"Other\" SG_ 256 Gear 300;\n\
    BA_REL_ \"Lost\" BU_SG_REL_ ECU SG_ 256 Gear 1;\n\
    VAL_ 256 Gear 0 \"neutral\" 256 \"high\" ;\n";

#[test]
fn senders_and_cycle_times_are_read() {
    let dbc = Dbc::parse(CYCLES).unwrap();
    let of = |index: usize| (dbc.messages[index].sender.as_deref(), dbc.messages[index].cycle_ms);
    assert_eq!(
        [of(0), of(1), of(2)],
        [(Some("ECU"), Some(10)), (None, Some(100)), (Some("BODY"), None)]
    );
    let wrong = Dbc::parse(&CYCLES.replace("BO_ 256 10;", "BO_ 257 10;")).unwrap_err();
    assert_eq!(wrong.line, 9);
    let wrong = Dbc::parse(&CYCLES.replace("BO_ 256 10;", "BO_ 256 soon;")).unwrap_err();
    assert!(wrong.to_string().contains("the time in ms"), "{wrong}");
}

#[test]
fn other_identifiers_are_written_wherever_a_message_is_named() {
    let id = |raw| standard(raw).unwrap();
    let ids = [(id(256), extended(0x1234).unwrap()), (id(300), id(256))];
    let text = renumbered(CYCLES, &ids).unwrap();
    let wide = 0x8000_1234_u32;
    let expected = CYCLES
        .replace("BO_ 300 Lamp", "BO_ 256 Lamp")
        .replace("BO_ 256 Engine", &format!("BO_ {wide} Engine"))
        .replace("CM_ BO_ 256 ", &format!("CM_ BO_ {wide} "))
        .replace("BO_ 256 10;", &format!("BO_ {wide} 10;"))
        .replace("BO_ 300 0;", "BO_ 256 0;")
        .replace("SG_ 256 Gear", &format!("SG_ {wide} Gear"))
        .replace("VAL_ 256", &format!("VAL_ {wide}"));
    assert_eq!(text, expected);
    let read = Dbc::parse(&text).unwrap();
    assert_eq!((read.messages[0].id, read.messages[2].id), (ids[0].1, ids[1].1));
    assert_eq!(renumbered(CYCLES, &[]).unwrap(), CYCLES);
    assert!(renumbered("CM_ \"open", &[]).is_err());
}

#[test]
fn formats_of_frames_are_those_of_the_files_own_list() {
    let file = "BO_ 256 Long: 64 ECU\n SG_ Last : 504|8@1+ (1,0) [0|0] \"\" X\n\
        BO_ 257 Short: 8 ECU\nBO_ 258 Quick: 8 ECU\nBO_ 259 Unsaid: 8 ECU\n\
        BA_DEF_ BO_ \"VFrameFormat\" ENUM \"StandardCAN\",\"ExtendedCAN\",\"StandardCAN_FD\";\n\
        BA_DEF_ BU_ \"VFrameFormat\" INT 0 1;\n\
        BA_DEF_DEF_ \"VFrameFormat\" \"StandardCAN\";\n\
        BA_ \"VFrameFormat\" BO_ 256 2;\nBA_ \"VFrameFormat\" BO_ 258 \"StandardCAN_FD\";\n";
    let dbc = Dbc::parse(file).unwrap();
    let fd: Vec<Option<bool>> = dbc.messages.iter().map(|message| message.fd).collect();
    assert_eq!(fd, [Some(true), Some(false), Some(true), Some(false)]);
    let data = dbc.messages[0].encode(&[("Last", decimal("7"))]).unwrap();
    assert_eq!((data.len(), data[63]), (64, 7));
    assert_eq!(read(&dbc.messages[0], &data), ["Last 7"]);
    // Without a list a number says nothing, and the size does.
    let without = file.replace("BA_DEF_ BO_", "CM_ BO_").replace("BA_DEF_DEF_", "CM_");
    let dbc = Dbc::parse(&without).unwrap();
    assert!(dbc.messages[0].fd.is_none() && dbc.messages[0].is_fd() && !dbc.messages[1].is_fd());
    let wrong = Dbc::parse(&file.replace("BO_ 256 2;", "BO_ 256 3;")).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "line 9: the list of `VFrameFormat` has no format 3: correct the number"
    );
    let wrong = Dbc::parse(&file.replace("ENUM \"StandardCAN\"", "ENUM 1")).unwrap_err();
    assert!(wrong.to_string().contains("the name of a format in quotes"), "{wrong}");
}
