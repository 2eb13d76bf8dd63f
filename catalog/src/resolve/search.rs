//! The search for an answer.
//!
//! OLM guesses: it goes through the choices in the order they come up, takes the first candidate of each, and goes back when that
//! leads nowhere (`solver/search.go`). Its answer is therefore the first, by the order of choices and candidates, of all that
//! there are. Here a SAT solver says of each candidate whether anything is left with it, so nothing has to be taken back. What
//! OLM does after its search, to leave out what is not needed, changes nothing: every candidate that was chosen is needed, and
//! all others can stay out.

use std::cell::Cell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

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
    if !oracle.is_possible()? {
        return oracle.excluded().map(Answer::Excluded);
    }
    let mut choices_of: Vec<Vec<&[Variable]>> = vec![Vec::new(); problem.variables.len()];
    let mut choices: VecDeque<&[Variable]> = VecDeque::new();
    for constraint in &problem.constraints {
        match constraint {
            Constraint::Subscribed(variable) | Constraint::Orphan(variable) => {
                choices.push_back(std::slice::from_ref(variable));
            }
            Constraint::Wants(variable, _) | Constraint::Requires(variable, ..) => {
                choices_of[variable.0].push(constraint.candidates());
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
            if oracle.choose(*candidate)? {
                chosen.push(*candidate);
                is_chosen.insert(*candidate);
                choices.extend(&choices_of[candidate.0]);
                break;
            }
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
    /// For each list of candidates that several bundles require, by its address, a literal that asks for one of them.
    shared: HashMap<*const Variable, Lit>,
    /// The last answer that was found.
    model: Vec<lbool>,
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
        let mut oracle = Self { solver, variables, counts, shared: HashMap::new(), model: Vec::new() };
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
            Constraint::Requires(variable, _, candidates) if Rc::strong_count(candidates) > 1 => {
                let one = self.one_of(candidates);
                self.clause(at, vec![!lit(self, variable), one]);
            }
            Constraint::Wants(variable, _) | Constraint::Requires(variable, ..) => {
                let mut clause = vec![!lit(self, variable)];
                clause.extend(constraint.candidates().iter().map(|candidate| lit(self, candidate)));
                self.clause(at, clause);
            }
            Constraint::TakesOver(new, old) => self.clause(at, vec![!lit(self, new), !lit(self, old)]),
            Constraint::OnePackage(_, variables) | Constraint::OneProvider(_, variables) => {
                self.at_most_one(at, variables);
            }
        }
    }

    /// A literal that holds only with one of the candidates: a long list stands in one clause, and not in one for each bundle
    /// that requires it.
    fn one_of(&mut self, candidates: &[Variable]) -> Lit {
        if let Some(one) = self.shared.get(&candidates.as_ptr()) {
            return *one;
        }
        let one = Lit::new(self.solver.new_var_default(), true);
        let mut clause = vec![!one];
        clause.extend(candidates.iter().map(|candidate| self.variables[candidate.0]));
        self.solver.add_clause_reuse(&mut clause);
        self.shared.insert(candidates.as_ptr(), one);
        one
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

    /// Whether there is an answer. If so, all constraints count from now on.
    fn is_possible(&mut self) -> Option<bool> {
        let is_possible = self.solve(&self.counts.clone())?;
        if is_possible {
            self.model = self.solver.get_model().to_vec();
            for count in &self.counts {
                self.solver.add_clause_reuse(&mut vec![*count]);
            }
        }
        Some(is_possible)
    }

    /// Whether there is an answer with this one and those that were chosen before. If so, it is chosen.
    fn choose(&mut self, candidate: Variable) -> Option<bool> {
        let lit = self.variables[candidate.0];
        // The last answer may have it already.
        let has_it = self.model[lit.var().idx() as usize] == lbool::TRUE;
        if !has_it {
            if !self.solve(&[lit])? {
                return Some(false);
            }
            self.model = self.solver.get_model().to_vec();
        }
        self.solver.add_clause_reuse(&mut vec![lit]);
        Some(true)
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
