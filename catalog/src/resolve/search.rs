//! The search for an answer.
//!
//! OLM guesses: it goes through the choices in the order they come up, takes the first candidate of each, and goes back when that
//! leads nowhere (`solver/search.go`). Its answer is therefore the first, by the order of choices and candidates, of all that
//! there are. Here a SAT solver says of each candidate whether anything is left with it, so nothing has to be taken back. What
//! OLM does after its search, to leave out what is not needed, changes nothing: every candidate that was chosen is needed, and
//! all others can stay out.

use std::cell::Cell;
use std::collections::{HashSet, VecDeque};

use batsat::{Callbacks, ClauseKind, Lit, Solver, SolverInterface, SolverOpts, Var, lbool};

use super::problem::{Constraint, Problem, Variable};

/// Harder problems are given up. Real ones take none of these steps.
const MAX_LEARNT: u64 = 200_000;

/// What the search has found.
pub(super) enum Answer {
    /// Its members.
    Chosen(Vec<Variable>),
    /// There is no answer; these constraints exclude each other, by their numbers, and no smaller part of them does.
    Excluded(Vec<usize>),
}

/// Searches; gives up on problems that are too hard.
pub(super) fn search(problem: &Problem<'_>) -> Option<Answer> {
    let mut oracle = Oracle::new(problem);
    if !oracle.is_possible(&[])? {
        return oracle.excluded().map(Answer::Excluded);
    }
    let mut choices_of: Vec<Vec<&[Variable]>> = vec![Vec::new(); problem.variables.len()];
    let mut choices: VecDeque<&[Variable]> = VecDeque::new();
    for constraint in &problem.constraints {
        match constraint {
            Constraint::Subscribed(variable) | Constraint::Orphan(variable) => {
                choices.push_back(std::slice::from_ref(variable));
            }
            Constraint::Wants(variable, candidates) | Constraint::Requires(variable, _, candidates) => {
                choices_of[variable.0].push(candidates);
            }
            _ => {}
        }
    }
    let mut chosen: Vec<Variable> = Vec::new();
    let mut is_chosen: HashSet<Variable> = HashSet::new();
    while let Some(candidates) = choices.pop_front() {
        if candidates.iter().any(|candidate| is_chosen.contains(candidate)) {
            continue;
        }
        for candidate in candidates {
            chosen.push(*candidate);
            if oracle.is_possible(&chosen)? {
                is_chosen.insert(*candidate);
                choices.extend(&choices_of[candidate.0]);
                break;
            }
            chosen.pop();
        }
    }
    Some(Answer::Chosen(chosen))
}

/// Says whether there is an answer.
struct Oracle {
    solver: Solver<ConflictLimit>,
    variables: Vec<Lit>,
    /// For each constraint a literal that makes it count.
    counts: Vec<Lit>,
}

/// Stops a solver that has tried for too long.
#[derive(Default)]
struct ConflictLimit {
    learnt: Cell<u64>,
}

impl Callbacks for ConflictLimit {
    fn on_new_clause(&mut self, _: &[Lit], kind: ClauseKind) {
        if kind == ClauseKind::Learnt {
            self.learnt.set(self.learnt.get() + 1);
        }
    }

    fn stop(&self) -> bool {
        self.learnt.get() > MAX_LEARNT
    }
}

impl Oracle {
    fn new(problem: &Problem<'_>) -> Self {
        let mut solver = Solver::new(SolverOpts::default(), ConflictLimit::default());
        let variables = problem.variables.iter().map(|_| Lit::new(solver.new_var_default(), true)).collect();
        let counts = problem.constraints.iter().map(|_| Lit::new(solver.new_var_default(), true)).collect();
        let mut oracle = Self { solver, variables, counts };
        for (at, constraint) in problem.constraints.iter().enumerate() {
            oracle.add(at, constraint);
        }
        oracle
    }

    fn add(&mut self, at: usize, constraint: &Constraint) {
        let lit = |oracle: &Self, variable: &Variable| oracle.variables[variable.0];
        match constraint {
            Constraint::Subscribed(variable) | Constraint::Orphan(variable) => {
                self.clause(at, vec![lit(self, variable)]);
            }
            Constraint::NoCandidates(variable, _) | Constraint::Deprecated(variable) => {
                self.clause(at, vec![!lit(self, variable)]);
            }
            Constraint::Wants(variable, candidates) | Constraint::Requires(variable, _, candidates) => {
                let mut clause = vec![!lit(self, variable)];
                clause.extend(candidates.iter().map(|candidate| lit(self, candidate)));
                self.clause(at, clause);
            }
            Constraint::TakesOver(new, old) => self.clause(at, vec![!lit(self, new), !lit(self, old)]),
            Constraint::OnePackage(_, variables) | Constraint::OneProvider(_, variables) => {
                self.at_most_one(at, variables);
            }
        }
    }

    /// A ladder: each rung says whether one of the variables up to it is in the answer.
    fn at_most_one(&mut self, at: usize, variables: &[Variable]) {
        let mut below: Option<Lit> = None;
        for variable in variables {
            let lit = self.variables[variable.0];
            let rung: Var = self.solver.new_var_default();
            let rung = Lit::new(rung, true);
            self.clause(at, vec![!lit, rung]);
            if let Some(below) = below {
                self.clause(at, vec![!below, rung]);
                self.clause(at, vec![!below, !lit]);
            }
            below = Some(rung);
        }
    }

    fn clause(&mut self, at: usize, mut clause: Vec<Lit>) {
        clause.push(!self.counts[at]);
        self.solver.add_clause_reuse(&mut clause);
    }

    /// Whether there is an answer with all of these.
    fn is_possible(&mut self, chosen: &[Variable]) -> Option<bool> {
        let mut assumed = self.counts.clone();
        assumed.extend(chosen.iter().map(|variable| self.variables[variable.0]));
        self.solve(&assumed)
    }

    fn solve(&mut self, assumed: &[Lit]) -> Option<bool> {
        let result = self.solver.solve_limited(assumed);
        if result == lbool::TRUE {
            Some(true)
        } else if result == lbool::FALSE {
            Some(false)
        } else {
            None
        }
    }

    /// Constraints that exclude each other: some that the solver needed, then without those that can be done without.
    /// Those that come last go first, so that what remains starts at the Subscriptions.
    fn excluded(&mut self) -> Option<Vec<usize>> {
        let mut needed: Vec<usize> = (0..self.counts.len()).collect();
        needed.retain(|at| {
            self.solver.unsat_core_contains_lit(self.counts[*at])
                || self.solver.unsat_core_contains_lit(!self.counts[*at])
        });
        let mut at = needed.len();
        while at > 0 {
            at -= 1;
            let rest: Vec<usize> = needed.iter().copied().filter(|other| *other != needed[at]).collect();
            let assumed: Vec<Lit> = rest.iter().map(|other| self.counts[*other]).collect();
            if !self.solve(&assumed)? {
                needed = rest;
            }
        }
        Some(needed)
    }
}
