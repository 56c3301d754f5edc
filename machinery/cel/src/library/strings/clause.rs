//! Clauses of format strings (`%s`, `%.3f`, `%X`), for `format` and for the validation of literal format strings.

/// Verb of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `%s`
    String,
    /// `%d`
    Decimal,
    /// `%f`
    Fixed,
    /// `%e`
    Scientific,
    /// `%b`
    Binary,
    /// `%x`, or `%X` in capitals.
    Hex {
        /// True for upper case.
        capitals: bool,
    },
    /// `%o`
    Octal,
}

/// A clause: verb and precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Verb of the clause.
    pub verb: Verb,
    /// Number after the decimal point, if any.
    pub precision: Option<u64>,
}

/// Formatter of clauses.
pub(crate) trait Format {
    /// Returns the number of arguments.
    fn arguments(&self) -> usize;

    /// True if a missing argument is reported before an invalid clause.
    const ARGUMENTS_FIRST: bool;

    /// Writes literal text.
    ///
    /// # Errors
    /// The text becomes too long.
    fn text(&mut self, text: &str) -> Result<(), String>;

    /// Formats an argument according to a clause.
    ///
    /// # Errors
    /// The argument does not match the clause.
    fn clause(&mut self, index: usize, clause: Clause) -> Result<(), String>;
}

/// Walks through a format string. Returns the number of clauses.
///
/// # Errors
/// Upstream's message about the first invalid clause.
pub(crate) fn visit_clauses<F: Format>(format: &str, into: &mut F) -> Result<usize, String> {
    let mut rest = format;
    let mut index = 0;
    while let Some(start) = rest.find('%') {
        into.text(&rest[..start])?;
        let after = &rest[start + 1..];
        if let Some(after) = after.strip_prefix('%') {
            into.text("%")?;
            rest = after;
            continue;
        }
        let missing = index >= into.arguments();
        if after.is_empty() && !(missing && F::ARGUMENTS_FIRST) {
            return Err("unexpected end of string".to_owned());
        }
        if missing {
            return Err(format!("index {index} out of range"));
        }
        let (clause, after) = clause(after).map_err(|e| format!("could not parse formatting clause: {e}"))?;
        into.clause(index, clause).map_err(|error| format!("error during formatting: {error}"))?;
        (rest, index) = (after, index + 1);
    }
    into.text(rest)?;
    Ok(index)
}

/// Parses the clause at the start of a text, after its `%`. Also returns the rest.
fn clause(text: &str) -> Result<(Clause, &str), String> {
    let (precision, rest) = precision(text).map_err(|e| format!("error while parsing precision: {e}"))?;
    // Upstream inspects one byte and prints it as a character.
    let first = rest.as_bytes().first().copied().unwrap_or_default();
    let verb = match first {
        b's' => Verb::String,
        b'd' => Verb::Decimal,
        b'f' => Verb::Fixed,
        b'e' => Verb::Scientific,
        b'b' => Verb::Binary,
        b'x' => Verb::Hex { capitals: false },
        b'X' => Verb::Hex { capitals: true },
        b'o' => Verb::Octal,
        other => return Err(format!("unrecognized formatting clause \"{}\"", char::from(other))),
    };
    Ok((Clause { verb, precision }, &rest[1..]))
}

fn precision(text: &str) -> Result<(Option<u64>, &str), String> {
    let Some(rest) = text.strip_prefix('.') else { return Ok((None, text)) };
    let end = rest.find(|c: char| !c.is_ascii_digit());
    let end = end.ok_or_else(|| "could not find end of precision specifier".to_owned())?;
    let digits = &rest[..end];
    match digits.parse::<i64>() {
        Ok(precision) => Ok((u64::try_from(precision).ok(), &rest[end..])),
        Err(_) => {
            let reason = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
            Err(format!(
                "error while converting precision to integer: strconv.Atoi: parsing \"{digits}\": {reason}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formatter that prints clauses for tests.
    struct ClausePrinter(String, usize);

    impl Format for ClausePrinter {
        const ARGUMENTS_FIRST: bool = true;

        fn arguments(&self) -> usize {
            self.1
        }

        fn text(&mut self, text: &str) -> Result<(), String> {
            self.0.push_str(text);
            Ok(())
        }

        fn clause(&mut self, index: usize, clause: Clause) -> Result<(), String> {
            self.0.push_str(&format!("<{index} {:?} {:?}>", clause.verb, clause.precision));
            Ok(())
        }
    }

    #[test]
    fn clauses_are_found() {
        let cases = [
            ("", Ok("")),
            ("100%%", Ok("100%")),
            ("é%sé", Ok("é<0 String None>é")),
            ("%d%%%.3f", Ok("<0 Decimal None>%<1 Fixed Some(3)>")),
            ("%X%x", Ok("<0 Hex { capitals: true } None><1 Hex { capitals: false } None>")),
            ("%", Err("unexpected end of string")),
            ("%s%s%s", Err("index 2 out of range")),
            ("%5d", Err("could not parse formatting clause: unrecognized formatting clause \"5\"")),
            ("%é", Err("could not parse formatting clause: unrecognized formatting clause \"Ã\"")),
            (
                "%.2",
                Err(
                    "could not parse formatting clause: error while parsing precision: could not find end of precision specifier",
                ),
            ),
            (
                "%.f",
                Err(
                    "could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \"\": invalid syntax",
                ),
            ),
            (
                "%.99999999999999999999f",
                Err(
                    "could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \"99999999999999999999\": value out of range",
                ),
            ),
        ];
        for (format, want) in cases {
            let mut show = ClausePrinter(String::new(), 2);
            let walked = visit_clauses(format, &mut show).map(|_| show.0);
            assert_eq!(walked.as_deref().map_err(String::as_str), want, "{format}");
        }
    }
}
