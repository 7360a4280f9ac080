//! For tests: how the Microsoft C runtime takes a command line apart, from its documentation.
//!
//! <https://learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments>

use super::{BACKSLASH, QUOTE, SPACE, TAB, wide};

/// `argv` for a command line.
pub(super) fn parse(line: &[u16]) -> Vec<Vec<u16>> {
    let blank = |at: usize| matches!(line[at], SPACE | TAB);
    let mut at = 0;

    // The program's name: quotation marks are left out and backslashes mean themselves.
    let (mut program, mut quoted) = (Vec::new(), false);
    while at < line.len() && (quoted || !blank(at)) {
        match line[at] {
            QUOTE => quoted = !quoted,
            unit => program.push(unit),
        }
        at += 1;
    }

    let mut list = vec![program];
    loop {
        while at < line.len() && blank(at) {
            at += 1;
        }
        if at == line.len() {
            return list;
        }
        let (mut argument, mut quoted) = (Vec::new(), false);
        while at < line.len() && (quoted || !blank(at)) {
            let slashes = line[at..].iter().take_while(|&&unit| unit == BACKSLASH).count();
            at += slashes;
            if line.get(at) != Some(&QUOTE) {
                // Backslashes that no quotation mark follows mean themselves.
                argument.extend(std::iter::repeat_n(BACKSLASH, slashes));
                if slashes == 0 {
                    argument.push(line[at]);
                    at += 1;
                }
                continue;
            }
            argument.extend(std::iter::repeat_n(BACKSLASH, slashes / 2));
            if slashes % 2 == 1 {
                argument.push(QUOTE);
            } else if quoted && line.get(at + 1) == Some(&QUOTE) {
                argument.push(QUOTE);
                at += 1;
            } else {
                quoted = !quoted;
            }
            at += 1;
        }
        list.push(argument);
    }
}

#[test]
fn the_examples_of_the_documentation() {
    for (line, wanted) in [
        (r#""a b c" d e"#, &["a b c", "d", "e"][..]),
        (r#""ab\"c" "\\" d"#, &["ab\"c", "\\", "d"]),
        (r#"a\\\b d"e f"g h"#, &[r"a\\\b", "de fg", "h"]),
        (r#"a\\\"b c d"#, &[r#"a\"b"#, "c", "d"]),
        (r#"a\\\\"b c" d e"#, &[r"a\\b c", "d", "e"]),
        (r#"a"b"" c d"#, &["ab\" c d"]),
    ] {
        let parsed = parse(&wide(&format!("program {line}")));
        let wanted: Vec<_> = ["program"].iter().chain(wanted).map(|string| wide(string)).collect();
        assert_eq!(parsed, wanted, "{line}");
    }
}
