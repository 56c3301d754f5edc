//! Compares quantities with recorded results of apimachinery's `resource.Quantity` (`go run ./gostd quantities` in tests/go).

use serde::Deserialize;

use super::*;

const RECORDED: &str = include_str!("../../../testdata/quantities.jsonl");

#[derive(Deserialize)]
struct Row {
    text: String,
    error: Option<String>,
    #[serde(default)]
    printed: String,
    value: i64,
    milli: i64,
    sign: i64,
    integer: Option<i64>,
    #[serde(default)]
    float: String,
    #[serde(default)]
    rounded: String,
    #[serde(default)]
    negative: String,
    #[serde(default)]
    other: String,
    sum: Option<String>,
    #[serde(default)]
    rest: String,
    sum_value: i64,
    order: i64,
}

fn rows() -> Vec<Row> {
    RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn quantities_read_print_round_and_compare_as_recorded() {
    let rows = rows();
    assert!(rows.len() > 1600);
    for row in rows {
        let text = &row.text;
        let quantity = match text.parse::<Quantity>() {
            Ok(quantity) => quantity,
            Err(error) => {
                assert_eq!(Some(error.to_string()), row.error, "{text:?}");
                continue;
            }
        };
        assert_eq!(row.error, None, "{text:?}");
        assert_eq!(quantity.to_string(), row.printed, "{text}");
        assert_eq!((quantity.value(), quantity.milli_value()), (row.value, row.milli), "{text}");
        assert_eq!((quantity.sign(), quantity.integer()), (row.sign, row.integer), "{text}");
        let float: f64 = row.float.replace("Inf", "inf").parse().unwrap();
        let same = quantity.approximate().to_bits() == float.to_bits();
        assert!(same || quantity.approximate().is_nan() && float.is_nan(), "{text}: {float}");
        assert_eq!(quantity.clone().rounded_to_milli().to_string(), row.rounded, "{text}");
        assert_eq!(quantity.clone().negated().to_string(), row.negative, "{text}");
        let other: Quantity = row.other.parse().unwrap();
        assert_eq!(quantity.cmp(&other) as i64, row.order, "{text} and {}", row.other);
    }
}

#[test]
fn sums_and_differences_are_as_recorded() {
    for row in rows().into_iter().filter(|row| row.sum.is_some()) {
        let (one, two): (Quantity, Quantity) = (row.text.parse().unwrap(), row.other.parse().unwrap());
        let sum = one.plus(&two);
        assert_eq!(Some(sum.to_string()), row.sum, "{} + {}", row.text, row.other);
        assert_eq!(one.minus(&two).to_string(), row.rest, "{} - {}", row.text, row.other);
        assert_eq!(sum.value(), row.sum_value, "{} + {}", row.text, row.other);
    }
}

#[test]
fn long_numbers_and_large_exponents_are_fast() {
    let long = "7".repeat(100_000);
    for text in
        [format!("{long}Ei"), format!("{long}.{long}"), format!("0.{long}Ki"), format!("{long}e2147483647")]
    {
        let quantity: Quantity = text.parse().unwrap();
        assert!(quantity > Quantity::ZERO && !quantity.to_string().is_empty());
    }
    let far: Quantity = "1e2147483647".parse().unwrap();
    let sum = far.plus(&"1Ki".parse().unwrap());
    assert!(sum.to_string().len() < 100 && sum >= far);
    assert!("1Ki".parse::<Quantity>().unwrap().plus(&far).to_string().ends_with("e2147483646"));
}
