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
    /// Sets a flag by its letter. Returns false if the letter is unknown.
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

    /// Returns the letters of enabled flags, and those of disabled flags after a dash.
    pub(super) fn letters(self) -> String {
        let all =
            [('i', self.ignore_case), ('m', self.lines), ('s', self.dot_is_newline), ('U', self.swap_greed)];
        let letters_of = |on: bool| all.iter().filter(move |(_, is)| *is == on).map(|(letter, _)| *letter);
        let off: String = letters_of(false).collect();
        letters_of(true).collect::<String>() + if off.is_empty() { "" } else { "-" } + &off
    }
}
