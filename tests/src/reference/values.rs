//! Values of constants, computed from their expressions.

use std::time::Duration;

use syn::{BinOp, Expr, Lit, UnOp};

use super::sources::{Source, constant};

/// Value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Time(Duration),
}

/// Evaluator that finds other constants in the sources of the program.
pub(super) struct Evaluator<'s> {
    pub(super) sources: &'s [Source],
}

impl Evaluator<'_> {
    /// Value of an expression in the file at `path`.
    ///
    /// # Errors
    /// The part that cannot be evaluated.
    pub(super) fn value(&self, path: &str, expr: &Expr) -> Result<Value, String> {
        match expr {
            Expr::Paren(inner) => self.value(path, &inner.expr),
            Expr::Group(inner) => self.value(path, &inner.expr),
            Expr::Cast(cast) => self.value(path, &cast.expr),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
                Ok(Value::Number(-self.number(path, &unary.expr)?))
            }
            Expr::Lit(literal) => number(&literal.lit).map(Value::Number),
            Expr::Binary(binary) => {
                let (left, right) = (self.number(path, &binary.left)?, self.number(path, &binary.right)?);
                operation(&binary.op, left, right).map(Value::Number)
            }
            Expr::Call(call) => self.duration(path, call),
            Expr::Path(name) => match name.path.segments.last() {
                Some(segment) => self.constant(path, &segment.ident.to_string()),
                None => Err("an empty path".to_owned()),
            },
            _ => Err("an expression of this form".to_owned()),
        }
    }

    fn number(&self, path: &str, expr: &Expr) -> Result<f64, String> {
        match self.value(path, expr)? {
            Value::Number(number) => Ok(number),
            Value::Time(_) => Err("a computation with a duration".to_owned()),
        }
    }

    fn duration(&self, path: &str, call: &syn::ExprCall) -> Result<Value, String> {
        let (Expr::Path(function), Some(argument)) = (&*call.func, call.args.first()) else {
            return Err("a function call".to_owned());
        };
        let number = self.number(path, argument)?;
        let name = function.path.segments.last().map(|segment| segment.ident.to_string());
        let seconds = match name.as_deref() {
            Some("from_secs") => number,
            Some("from_millis") => number / 1e3,
            Some("from_micros") => number / 1e6,
            _ => return Err(format!("a call of {}", name.unwrap_or_default())),
        };
        Ok(Value::Time(Duration::from_secs_f64(seconds)))
    }

    /// The constant of this name in the same file, or the only one of this name in all files.
    fn constant(&self, path: &str, name: &str) -> Result<Value, String> {
        let declaration = format!("const {name}:");
        let mut found: Vec<&Source> =
            self.sources.iter().filter(|source| source.text.contains(&declaration)).collect();
        if let Some(same) = found.iter().find(|source| source.path == path) {
            found = vec![same];
        }
        let [source] = found[..] else { return Err(format!("{name}, which {} files define", found.len())) };
        let file = source.parse();
        let expr = constant(&file, name).ok_or_else(|| format!("{name} in {}", source.path))?;
        self.value(&source.path, &expr)
    }
}

fn number(literal: &Lit) -> Result<f64, String> {
    match literal {
        Lit::Int(number) => number.base10_parse().map_err(|error| error.to_string()),
        Lit::Float(number) => number.base10_parse().map_err(|error| error.to_string()),
        _ => Err("a literal that is not a number".to_owned()),
    }
}

fn operation(op: &BinOp, left: f64, right: f64) -> Result<f64, String> {
    Ok(match op {
        BinOp::Add(_) => left + right,
        BinOp::Sub(_) => left - right,
        BinOp::Mul(_) => left * right,
        BinOp::Div(_) => (left / right).trunc(),
        BinOp::Shl(_) => left * right.exp2(),
        BinOp::Shr(_) => (left / right.exp2()).trunc(),
        _ => return Err("an operation of this kind".to_owned()),
    })
}

impl Value {
    /// The value with its unit: `bytes`, `s`, a name in the plural, or an empty text.
    pub(super) fn with_unit(self, unit: &str) -> String {
        match (self, unit) {
            (Self::Time(time), _) => duration(time),
            (Self::Number(number), "s") => duration(Duration::from_secs_f64(number)),
            (Self::Number(number), "bytes") => bytes(number),
            (Self::Number(number), "") => grouped(number),
            (Self::Number(number), unit) => format!("{} {unit}", grouped(number)),
        }
    }
}

fn duration(time: Duration) -> String {
    let micros = time.as_micros();
    let units =
        [("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000)];
    match units.into_iter().find(|(_, size)| micros >= *size && micros.is_multiple_of(*size)) {
        Some((unit, size)) => format!("{} {unit}", micros / size),
        None => format!("{micros} µs"),
    }
}

fn bytes(number: f64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)].map(|(unit, bits)| (unit, f64::from(bits).exp2()));
    let unit = units.into_iter().find(|(_, size)| number >= *size && number % size == 0.0);
    match unit {
        Some((unit, size)) => format!("{} {unit}", grouped(number / size)),
        None => format!("{} bytes", grouped(number)),
    }
}

/// Digits in groups of three.
fn grouped(number: f64) -> String {
    let digits = format!("{number}");
    let (whole, rest) =
        digits.split_once('.').map_or((digits.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let groups: Vec<&str> =
        whole.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    rest.map_or(groups.join(","), |rest| format!("{}.{rest}", groups.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(expr: &str, unit: &str) -> Result<String, String> {
        let sources =
            [("a.rs", "const KIB: usize = 1 << 10;"), ("b.rs", "struct T; impl T { const N: usize = 7; }")];
        let sources = sources.map(|(path, text)| Source { path: path.to_owned(), text: text.to_owned() });
        let evaluator = Evaluator { sources: &sources };
        evaluator.value("a.rs", &syn::parse_str(expr).unwrap()).map(|value| value.with_unit(unit))
    }

    #[test]
    fn expressions_have_values_with_units() {
        for (expr, unit, expected) in [
            ("16 << 20", "bytes", "16 MiB"),
            ("4 * KIB", "bytes", "4 KiB"),
            ("50_000", "bytes", "50,000 bytes"),
            ("T::N as u64 + 3", "levels", "10 levels"),
            ("1_000_000", "", "1,000,000"),
            ("0.5", "", "0.5"),
            ("300", "s", "5 min"),
            ("Duration::from_secs(90)", "", "90 s"),
            ("Duration::from_secs(1)", "", "1 s"),
            ("Duration::from_secs(4 * 3600)", "", "4 h"),
            ("Duration::from_millis(1_500)", "", "1500 ms"),
            ("std::time::Duration::from_micros(100)", "", "100 µs"),
        ] {
            assert_eq!(evaluate(expr, unit).as_deref(), Ok(expected), "{expr}");
        }
    }

    #[test]
    fn unsupported_expressions_are_named() {
        assert_eq!(evaluate("MISSING", ""), Err("MISSING, which 0 files define".to_owned()));
        assert_eq!(evaluate("f(1)", ""), Err("a call of f".to_owned()));
    }
}
