//! Error recovery for invalid expressions, which reproduces the diagnostics of upstream's generated parser.
//!
//! The generated parser continues after an error: it drops an extra token, inserts a missing one, or leaves the rule and skips
//! the tokens that cannot follow it. So there can be several diagnostics, which depend on the recovery.
//! This module builds no tree; it only runs if [`super::parse`] has failed.

mod rules;
mod set;

use super::lexer::{LexedToken, Token};
use crate::diagnostics::Issue;
use set::{END, RULE_END, TokenSet};

/// Maximum number of recoveries from errors, as in cel-go.
const MAX_RECOVERIES: usize = 30;
/// Maximum number of diagnostics, as in cel-go.
const MAX_DIAGNOSTICS: usize = 100;
/// Maximum nesting of rules.
const MAX_DEPTH: usize = 1_000;

/// Returns the diagnostics of tokens that do not form an expression.
pub(super) fn diagnostics(text: &str, tokens: &[LexedToken]) -> Vec<Issue> {
    let mut recogniser = Recognizer {
        text,
        tokens,
        at: 0,
        follows: Vec::new(),
        recovering: false,
        left_positions: Vec::new(),
        recoveries: 0,
        issues: Vec::new(),
        deferred: Vec::new(),
    };
    // If it stopped, it has already reported the reason.
    let stopped = recogniser.start().is_err();
    let deferred = if stopped { Vec::new() } else { recogniser.deferred };
    recogniser.issues.extend(deferred);
    recogniser.issues
}

/// Reason for leaving a rule.
#[derive(Debug)]
enum RecognitionError {
    /// None of the alternatives of a rule starts with this range of tokens.
    NoViable { from: usize, to: usize },
    /// The token is not one of these.
    Mismatch(TokenSet),
    /// A limit was reached: the recovery stops.
    Stop,
}

type Step = Result<(), RecognitionError>;

struct Recognizer<'t> {
    text: &'t str,
    tokens: &'t [LexedToken],
    at: usize,
    /// Tokens that may follow each open rule.
    follows: Vec<TokenSet>,
    /// True while recovering from an error: further errors are not reported.
    recovering: bool,
    /// Positions (token and depth of rules) at which rules were left since the last match.
    left_positions: Vec<(usize, usize)>,
    recoveries: usize,
    issues: Vec<Issue>,
    /// Errors that upstream reports when it builds the tree, after all tokens are read: selections without a name, macros without
    /// required arguments.
    deferred: Vec<Issue>,
}

impl Recognizer<'_> {
    fn ahead(&self, count: usize) -> Token {
        self.tokens.get(self.at + count).map_or(Token::End, |lexed| lexed.token)
    }

    fn is(&self, set: TokenSet) -> bool {
        set.has(self.ahead(0))
    }

    fn next_is(&self, set: TokenSet) -> bool {
        set.has(self.ahead(1))
    }

    fn consume(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len());
    }

    /// Runs a rule that `follow` may follow. Errors in the rule are reported, and the rule is skipped.
    fn rule(&mut self, follow: TokenSet, body: impl FnOnce(&mut Self) -> Step) -> Step {
        if self.follows.len() >= MAX_DEPTH {
            return Err(RecognitionError::Stop);
        }
        self.follows.push(follow);
        if let Err(wrong) = body(self) {
            self.report(&wrong)?;
            self.recover()?;
        }
        self.follows.pop();
        Ok(())
    }

    /// Consumes an expected token; `after` contains the tokens that may follow it, by which a missing token is recognized.
    fn take(&mut self, expected: TokenSet, after: TokenSet) -> Step {
        if self.is(expected) {
            self.end_recovery();
            self.consume();
            return Ok(());
        }
        self.count_recovery()?;
        if self.next_is(expected) {
            self.drop_extra(expected)?;
            self.end_recovery();
            self.consume();
            return Ok(());
        }
        if self.is(self.expected(after)) {
            let found = self.current_text();
            return self.report_here(|| format!("missing {expected} at {found}"));
        }
        Err(RecognitionError::Mismatch(expected))
    }

    /// Checks if a choice is possible here, and drops an extra token before it.
    fn choose(&mut self, from: TokenSet) -> Step {
        if self.recovering || from.has_rule_end() || self.is(from) {
            return Ok(());
        }
        if self.next_is(from) {
            self.drop_extra(from)?;
            self.end_recovery();
            return Ok(());
        }
        Err(RecognitionError::Mismatch(from))
    }

    /// Checks a choice like [`Self::choose`] after an iteration of a loop, where all tokens that cannot follow are dropped.
    fn choose_again(&mut self, from: TokenSet) -> Step {
        if self.recovering || self.is(from) {
            return Ok(());
        }
        let found = self.current_text();
        self.report_here(|| format!("extraneous input {found} expecting {from}"))?;
        self.skip_to(from | self.following_tokens());
        Ok(())
    }

    /// Drops an unexpected token.
    fn drop_extra(&mut self, expected: TokenSet) -> Step {
        let found = self.current_text();
        self.report_here(|| format!("extraneous input {found} expecting {expected}"))?;
        self.consume();
        Ok(())
    }

    fn end_recovery(&mut self) {
        self.recovering = false;
        self.left_positions.clear();
    }

    /// Returns the tokens that are possible where one of `possible` is, including those after the open rules.
    fn expected(&self, possible: TokenSet) -> TokenSet {
        let mut all = possible;
        let mut last = possible;
        for follow in self.follows.iter().rev() {
            if !last.has_rule_end() {
                break;
            }
            last = *follow;
            all = all | last;
        }
        all - RULE_END
    }

    fn following_tokens(&self) -> TokenSet {
        self.follows.iter().fold(TokenSet::default(), |all, follow| all | *follow) - RULE_END
    }

    fn report(&mut self, wrong: &RecognitionError) -> Step {
        match wrong {
            RecognitionError::Stop => Err(RecognitionError::Stop),
            RecognitionError::Mismatch(expected) => {
                let (found, expected) = (self.current_text(), self.expected(*expected));
                self.report_here(|| format!("mismatched input {found} expecting {expected}"))
            }
            RecognitionError::NoViable { from, to } => {
                let (read, offset) = (self.text_between(*from, *to), self.offset_of(*to));
                let text = match word_after_dot(&read) {
                    Some(word) => format!("mismatched input '{word}' expecting IDENTIFIER"),
                    None => format!("no viable alternative at input {}", quoted(&read)),
                };
                self.report_at(offset, || text)
            }
        }
    }

    /// Leaves a rule: drops all tokens that cannot follow one of the open rules.
    fn recover(&mut self) -> Step {
        self.count_recovery()?;
        let state = (self.at, self.follows.len());
        if self.left_positions.contains(&state) {
            self.consume();
        }
        self.left_positions.retain(|(position, _)| *position == self.at);
        self.left_positions.push((self.at, self.follows.len()));
        self.skip_to(self.following_tokens());
        Ok(())
    }

    fn skip_to(&mut self, set: TokenSet) {
        while self.ahead(0) != Token::End && !self.is(set) {
            self.consume();
        }
    }

    fn count_recovery(&mut self) -> Step {
        if self.recoveries == MAX_RECOVERIES {
            let text = format!("Syntax error: error recovery attempt limit exceeded: {MAX_RECOVERIES}");
            self.issues.push(Issue::at(self.offset_of(self.at), text));
            return Err(RecognitionError::Stop);
        }
        self.recoveries += 1;
        Ok(())
    }

    /// Reports an error at the current token, unless an error is being recovered from.
    fn report_here(&mut self, text: impl FnOnce() -> String) -> Step {
        self.report_at(self.offset_of(self.at), text)
    }

    fn report_at(&mut self, offset: usize, text: impl FnOnce() -> String) -> Step {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        self.issues.push(Issue::at(offset, format!("Syntax error: {}", text())));
        if self.issues.len() < MAX_DIAGNOSTICS { Ok(()) } else { Err(RecognitionError::Stop) }
    }

    fn offset_of(&self, index: usize) -> usize {
        self.tokens.get(index).map_or(self.text.len(), |lexed| lexed.start)
    }

    fn current_text(&self) -> String {
        quoted(self.tokens.get(self.at).map_or("<EOF>", |lexed| &self.text[lexed.start..lexed.end]))
    }

    /// Returns the texts of tokens with the space between them.
    fn text_between(&self, from: usize, to: usize) -> String {
        if from >= self.tokens.len() {
            return "<EOF>".to_owned();
        }
        let mut text = String::new();
        let mut end = self.offset_of(from);
        for index in from..=to {
            let offset = self.offset_of(index);
            // Invalid tokens are not printed.
            let gap = &self.text[end..offset];
            let unread = gap.trim_ascii();
            text.push_str(&gap.replacen(unread, "", usize::from(!unread.is_empty())));
            end = self.tokens.get(index).map_or(offset, |lexed| lexed.end);
            text.push_str(&self.text[offset..end]);
        }
        text
    }

    /// Returns the error that no alternative starts with the tokens up to `ahead`.
    fn no_viable(&self, ahead: usize) -> Step {
        Err(RecognitionError::NoViable { from: self.at, to: self.at + ahead })
    }

    fn start(&mut self) -> Step {
        self.rule(TokenSet::default(), |it| {
            it.expr(END)?;
            it.take(END, RULE_END)
        })
    }
}

/// Returns the reserved word after a dot, as in `.true`, which upstream reports without the dot.
fn word_after_dot(read: &str) -> Option<&str> {
    let mut characters = read.chars();
    characters.next()?;
    Some(characters.as_str()).filter(|rest| ["true", "false", "null"].contains(rest))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}
