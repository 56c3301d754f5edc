//! What is wrong with a text that the grammar does not have, in the words of the parser that upstream generates.
//!
//! That parser goes on after an error: it drops a token that is one too many, imagines one that is missing, or leaves the
//! rule and skips what cannot stand behind it. So there may be several diagnostics, and which ones depends on that way.
//! Nothing is built here; this runs only when [`super::parse`] has failed.

mod rules;
mod set;

use super::lexer::{Lexed, Token};
use crate::diagnostics::Issue;
use set::{BEHIND, END, Set};

/// Maximum number of recoveries from errors, as in cel-go.
const MAX_RECOVERIES: usize = 30;
/// Maximum number of diagnostics, as in cel-go.
const MAX_DIAGNOSTICS: usize = 100;
/// Maximum nesting of rules.
const MAX_DEPTH: usize = 1_000;

/// The diagnostics about tokens that are no expression.
pub(super) fn diagnostics(text: &str, tokens: &[Lexed]) -> Vec<Issue> {
    let mut recogniser = Recogniser {
        text,
        tokens,
        at: 0,
        follows: Vec::new(),
        recovering: false,
        stuck: Vec::new(),
        recoveries: 0,
        issues: Vec::new(),
        deferred: Vec::new(),
    };
    // Where it stopped, it has reported that.
    let stopped = recogniser.start().is_err();
    let deferred = if stopped { Vec::new() } else { recogniser.deferred };
    recogniser.issues.extend(deferred);
    recogniser.issues
}

/// Reason for leaving a rule.
#[derive(Debug)]
enum Wrong {
    /// None of a rule's alternatives begins with the tokens from one to the other.
    NoViable { from: usize, to: usize },
    /// Another token than these.
    Mismatch(Set),
    /// A limit: nothing goes on.
    Stop,
}

type Step = Result<(), Wrong>;

struct Recogniser<'t> {
    text: &'t str,
    tokens: &'t [Lexed],
    at: usize,
    /// Tokens that may follow each open rule.
    follows: Vec<Set>,
    /// True while recovering from an error: further errors are not reported.
    recovering: bool,
    /// Where rules were left since the last match: the token, and the depth of rules.
    stuck: Vec<(usize, usize)>,
    recoveries: usize,
    issues: Vec<Issue>,
    /// What upstream reports while it builds the tree, once all is read: selections without a name, macros without what they need.
    deferred: Vec<Issue>,
}

impl Recogniser<'_> {
    fn ahead(&self, count: usize) -> Token {
        self.tokens.get(self.at + count).map_or(Token::End, |lexed| lexed.token)
    }

    fn is(&self, set: Set) -> bool {
        set.has(self.ahead(0))
    }

    fn next_is(&self, set: Set) -> bool {
        set.has(self.ahead(1))
    }

    fn consume(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len());
    }

    /// Runs a rule that this may stand behind. What is wrong in it is reported, and skipped.
    fn rule(&mut self, follow: Set, body: impl FnOnce(&mut Self) -> Step) -> Step {
        if self.follows.len() >= MAX_DEPTH {
            return Err(Wrong::Stop);
        }
        self.follows.push(follow);
        if let Err(wrong) = body(self) {
            self.report(&wrong)?;
            self.recover()?;
        }
        self.follows.pop();
        Ok(())
    }

    /// Takes a token that is expected, where what may follow it in its rule helps to recognise that it is missing.
    fn take(&mut self, wanted: Set, after: Set) -> Step {
        if self.is(wanted) {
            self.matched();
            self.consume();
            return Ok(());
        }
        self.count_recovery()?;
        if self.next_is(wanted) {
            self.unwanted(wanted)?;
            self.matched();
            self.consume();
            return Ok(());
        }
        if self.is(self.expected(after)) {
            let found = self.shown();
            return self.report_here(|| format!("missing {wanted} at {found}"));
        }
        Err(Wrong::Mismatch(wanted))
    }

    /// Looks whether a choice is possible here, and drops a token before it that is one too many.
    fn choose(&mut self, from: Set) -> Step {
        if self.recovering || from.has_behind() || self.is(from) {
            return Ok(());
        }
        if self.next_is(from) {
            self.unwanted(from)?;
            self.matched();
            return Ok(());
        }
        Err(Wrong::Mismatch(from))
    }

    /// As [`Self::choose`] behind a turn of a loop, where everything goes that can stand nowhere.
    fn choose_again(&mut self, from: Set) -> Step {
        if self.recovering || self.is(from) {
            return Ok(());
        }
        let found = self.shown();
        self.report_here(|| format!("extraneous input {found} expecting {from}"))?;
        self.skip_to(from | self.anything_behind());
        Ok(())
    }

    /// Drops an unexpected token.
    fn unwanted(&mut self, expected: Set) -> Step {
        let found = self.shown();
        self.report_here(|| format!("extraneous input {found} expecting {expected}"))?;
        self.consume();
        Ok(())
    }

    fn matched(&mut self) {
        self.recovering = false;
        self.stuck.clear();
    }

    /// What may come where these may, the ends of the open rules included.
    fn expected(&self, here: Set) -> Set {
        let mut all = here;
        let mut last = here;
        for follow in self.follows.iter().rev() {
            if !last.has_behind() {
                break;
            }
            last = *follow;
            all = all | last;
        }
        all - BEHIND
    }

    fn anything_behind(&self) -> Set {
        self.follows.iter().fold(Set::default(), |all, follow| all | *follow) - BEHIND
    }

    fn report(&mut self, wrong: &Wrong) -> Step {
        match wrong {
            Wrong::Stop => Err(Wrong::Stop),
            Wrong::Mismatch(expected) => {
                let (found, expected) = (self.shown(), self.expected(*expected));
                self.report_here(|| format!("mismatched input {found} expecting {expected}"))
            }
            Wrong::NoViable { from, to } => {
                let (read, place) = (self.between(*from, *to), self.place_of(*to));
                let text = match word_behind_a_mark(&read) {
                    Some(word) => format!("mismatched input '{word}' expecting IDENTIFIER"),
                    None => format!("no viable alternative at input {}", quoted(&read)),
                };
                self.report_at(place, || text)
            }
        }
    }

    /// Leaves a rule: all goes that cannot stand behind one of the open rules.
    fn recover(&mut self) -> Step {
        self.count_recovery()?;
        let here = (self.at, self.follows.len());
        if self.stuck.contains(&here) {
            self.consume();
        }
        self.stuck.retain(|(at, _)| *at == self.at);
        self.stuck.push((self.at, self.follows.len()));
        self.skip_to(self.anything_behind());
        Ok(())
    }

    fn skip_to(&mut self, set: Set) {
        while self.ahead(0) != Token::End && !self.is(set) {
            self.consume();
        }
    }

    fn count_recovery(&mut self) -> Step {
        if self.recoveries == MAX_RECOVERIES {
            let text = format!("Syntax error: error recovery attempt limit exceeded: {MAX_RECOVERIES}");
            self.issues.push(Issue::at(self.place_of(self.at), text));
            return Err(Wrong::Stop);
        }
        self.recoveries += 1;
        Ok(())
    }

    /// Reports an error at the current token, unless an error is being recovered from.
    fn report_here(&mut self, text: impl FnOnce() -> String) -> Step {
        self.report_at(self.place_of(self.at), text)
    }

    fn report_at(&mut self, place: usize, text: impl FnOnce() -> String) -> Step {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        self.issues.push(Issue::at(place, format!("Syntax error: {}", text())));
        if self.issues.len() < MAX_DIAGNOSTICS { Ok(()) } else { Err(Wrong::Stop) }
    }

    fn place_of(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(self.text.len(), |lexed| lexed.start)
    }

    fn shown(&self) -> String {
        quoted(self.tokens.get(self.at).map_or("<EOF>", |lexed| &self.text[lexed.start..lexed.end]))
    }

    /// The texts of tokens, and the space between them.
    fn between(&self, from: usize, to: usize) -> String {
        if from >= self.tokens.len() {
            return "<EOF>".to_owned();
        }
        let mut text = String::new();
        let mut end = self.place_of(from);
        for at in from..=to {
            let place = self.place_of(at);
            // Invalid tokens are not printed.
            let gap = &self.text[end..place];
            let unread = gap.trim_ascii();
            text.push_str(&gap.replacen(unread, "", usize::from(!unread.is_empty())));
            end = self.tokens.get(at).map_or(place, |lexed| lexed.end);
            text.push_str(&self.text[place..end]);
        }
        text
    }

    /// That no alternative begins with the tokens up to one ahead.
    fn no_viable(&self, ahead: usize) -> Step {
        Err(Wrong::NoViable { from: self.at, to: self.at + ahead })
    }

    fn start(&mut self) -> Step {
        self.rule(Set::default(), |it| {
            it.expr(END)?;
            it.take(END, BEHIND)
        })
    }
}

/// The reserved word behind a dot, as in `.true`, which upstream reports without the dot.
fn word_behind_a_mark(read: &str) -> Option<&str> {
    let mut characters = read.chars();
    characters.next()?;
    Some(characters.as_str()).filter(|rest| ["true", "false", "null"].contains(rest))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}
