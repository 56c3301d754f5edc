//! Flags of groups: `(?i)`, `(?s-m:...)`.

/// Enabled flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    ignore_case: bool,
    lines: bool,
    dot_is_newline: bool,
    swap_greed: bool,
}

impl Flags {
    /// Switches one by its letter. Says whether there is such a one.
    pub(super) fn set(&mut self, letter: char, on: bool) -> bool {
        match letter {
            'i' => self.ignore_case = on,
            'm' => self.lines = on,
            's' => self.dot_is_newline = on,
            'U' => self.swap_greed = on,
            _ => return false,
        }
        true
    }

    /// Letters of those that are on, and behind a dash of those that are off.
    pub(super) fn letters(self) -> String {
        let all =
            [('i', self.ignore_case), ('m', self.lines), ('s', self.dot_is_newline), ('U', self.swap_greed)];
        let those = |on: bool| all.iter().filter(move |(_, is)| *is == on).map(|(letter, _)| *letter);
        let off: String = those(false).collect();
        those(true).collect::<String>() + if off.is_empty() { "" } else { "-" } + &off
    }
}
