//! Random mutations of an input, as by careless users, broken clients and attackers.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// Tokens that break parsers more often than others.
const TOKENS: &[&str] = &[
    "",
    " ",
    "\0",
    "\n",
    "\r\n",
    "\t",
    "/",
    "//",
    "..",
    "%",
    "%00",
    "%2f",
    "%zz",
    "=",
    "==",
    "!=",
    "!",
    ",",
    ";",
    "&",
    "*",
    "\"",
    "'",
    "\\",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    "{}",
    "[]",
    "null",
    "true",
    "1e999",
    "-0",
    "-1",
    "9223372036854775808",
    "0x10",
    "0755",
    ":",
    ": ",
    "- ",
    "&a",
    "*a",
    "!!binary ",
    "|\n",
    "---\n",
    "~1",
    "~0",
    "~2",
    "\u{feff}",
    "\u{202e}",
    "é",
    "𝕏",
    "in",
    "notin",
    " in ()",
    "q=",
    "Bearer ",
    "-----BEGIN CERTIFICATE-----",
    "kind",
    "metadata",
];

/// Maximum length of an input in bytes.
const MAX_LENGTH: usize = 4096;

/// An endless source of inputs, deterministic for a seed.
pub struct Mutator {
    random: StdRng,
    corpus: Vec<Vec<u8>>,
}

impl Mutator {
    pub fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Self {
        Self { random: StdRng::seed_from_u64(seed), corpus }
    }

    /// Returns a member of the corpus after one to six mutations; sometimes random bytes.
    pub fn next(&mut self) -> Vec<u8> {
        let mut input = self.corpus.choose(&mut self.random).cloned().unwrap_or_default();
        if self.random.random_ratio(1, 50) {
            input = (0..self.random.random_range(0..64)).map(|_| self.random.random()).collect();
        }
        for _ in 0..self.random.random_range(1..=6) {
            self.mutate(&mut input);
        }
        input.truncate(MAX_LENGTH);
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let random = &mut self.random;
        let at = random.random_range(0..=input.len());
        let end = random.random_range(at..=input.len());
        match random.random_range(0..8) {
            0 if at < input.len() => input[at] ^= 1 << random.random_range(0..8),
            1 if at < input.len() => input[at] = random.random(),
            2 => drop(input.drain(at..end)),
            3 => {
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
            4 => {
                // Deep and long input.
                let piece: Vec<u8> = input[at..end].iter().copied().take(8).collect();
                input.splice(at..at, piece.repeat(random.random_range(1..64)));
            }
            5 => {
                let other = self.corpus.choose(random).cloned().unwrap_or_default();
                let from = random.random_range(0..=other.len());
                input.splice(at..end, other[from..].iter().copied());
            }
            _ => {
                let token = TOKENS.choose(random).copied().unwrap_or_default();
                input.splice(at..at, token.bytes());
            }
        }
    }
}
