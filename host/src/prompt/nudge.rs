//! When the host speaks up during a turn (SPEC 1.15): the task list is left alone, or the steps bring nothing new.
//!
//! Each nudge comes once: the one about tasks again only after the list was touched, the other once a turn. A nudge is a
//! message at the tail; the prompt is never edited.

use std::collections::HashSet;

/// Steps in which an unfinished list may be left alone.
pub const UNTOUCHED: u32 = 3;

/// Steps in a row that bring nothing new before it is said.
pub const NOTHING_NEW: u32 = 3;

/// What a step was like.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// Whether the task list was written.
    pub tasks_touched: bool,
    /// Tasks that are not finished.
    pub open_tasks: u32,
    /// A hash of each tool result.
    pub results: Vec<u64>,
}

/// What is to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nudge {
    /// The list was left alone for this many steps, and this many tasks are open.
    TasksUntouched {
        /// Steps.
        steps: u32,
        /// Open tasks.
        open: u32,
    },
    /// The last steps brought nothing new.
    NothingNew,
}

/// What has been seen in a turn. Made when it begins.
#[derive(Debug, Default)]
pub struct Watch {
    untouched: u32,
    tasks_told: bool,
    seen: HashSet<u64>,
    nothing_new: u32,
    new_told: bool,
}

impl Watch {
    /// Takes in a step and answers with what is to be said after it.
    pub fn step(&mut self, step: &Step) -> Vec<Nudge> {
        let mut nudges = Vec::new();
        if step.tasks_touched || step.open_tasks == 0 {
            (self.untouched, self.tasks_told) = (0, false);
        } else {
            self.untouched += 1;
            if self.untouched >= UNTOUCHED && !self.tasks_told {
                self.tasks_told = true;
                nudges.push(Nudge::TasksUntouched { steps: self.untouched, open: step.open_tasks });
            }
        }
        // A step without calls is an answer, and no step of this kind.
        if !step.results.is_empty() {
            let before = self.seen.len();
            self.seen.extend(&step.results);
            self.nothing_new = if self.seen.len() == before { self.nothing_new + 1 } else { 0 };
            if self.nothing_new >= NOTHING_NEW && !self.new_told {
                self.new_told = true;
                nudges.push(Nudge::NothingNew);
            }
        }
        nudges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(touched: bool, open: u32, results: &[u64]) -> Step {
        Step { tasks_touched: touched, open_tasks: open, results: results.to_vec() }
    }

    #[test]
    fn an_untouched_list_is_named_once_until_it_is_touched_again() {
        let mut watch = Watch::default();
        let mut said = Vec::new();
        for at in 1..=12 {
            said.extend(watch.step(&step(at == 7, 2, &[at])).into_iter().map(|nudge| (at, nudge)));
        }
        let named = |steps| Nudge::TasksUntouched { steps, open: 2 };
        assert_eq!(said, [(3, named(3)), (10, named(3))]);
    }

    #[test]
    fn a_finished_list_is_never_named() {
        let mut watch = Watch::default();
        assert!((0..9).all(|at| watch.step(&step(false, 0, &[at])).is_empty()));
    }

    #[test]
    fn three_steps_that_bring_nothing_new_are_named_once() {
        let mut watch = Watch::default();
        let mut said = Vec::new();
        let steps: [&[u64]; 10] = [&[1], &[1], &[1, 2], &[2], &[1], &[2, 1], &[1], &[1], &[1], &[1]];
        for (at, results) in steps.iter().enumerate() {
            said.extend(watch.step(&step(false, 0, results)).into_iter().map(|nudge| (at, nudge)));
        }
        assert_eq!(said, [(5, Nudge::NothingNew)]);
    }
}
