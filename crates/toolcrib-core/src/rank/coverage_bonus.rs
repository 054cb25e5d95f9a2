//! The coverage bonus, which makes the first hits together serve all needs of a request.
//!
//! Without it, similar tools for the need that the request describes best would take all the first ranks. So hits are
//! placed one after another. The best hit stays first and gets the maximum bonus. Each following tool gets a bonus that
//! grows with its similarity to a need that the hits placed before it do not serve. A tool's bonus never grows as more
//! hits are placed, so hits are placed in the order of their final scores, and the hits for a small limit are the first
//! hits for a larger one.

use std::cmp::Ordering;

/// The bonus for a cosine of 1 with a need that no placed hit serves. Values from 0.3 to 0.6 work about equally well:
/// see training/README.md.
const MAX_BONUS: f32 = 0.4;
/// Number of hits that are placed one by one. Hits after these are rarely read, and placing a hit takes a pass over all
/// candidates.
const PLACED_HITS: usize = 10;

/// The coverage bonus of each candidate.
#[derive(Debug, Default)]
pub(super) struct CoverageBonuses {
    /// The bonuses, in the order of the candidates.
    pub(super) bonuses: Vec<f32>,
    /// For each need, the highest cosine of any placed hit with that need, at least 0.
    served: Vec<f32>,
}

impl CoverageBonuses {
    /// Places the best candidates. `scores` are the scores without the bonus. `similarities` has the cosine of each
    /// candidate with each need. `order` breaks ties between equal scores.
    pub(super) fn new(
        scores: &[f32],
        similarities: &[Vec<f32>],
        order: impl Fn(usize, usize) -> Ordering,
    ) -> Self {
        let needs = similarities.first().map_or(0, Vec::len);
        let mut result = Self { bonuses: vec![0.0; scores.len()], served: vec![0.0; needs] };
        let mut unplaced: Vec<usize> = (0..scores.len()).collect();
        for place in 0..PLACED_HITS {
            let bonus = |at: usize| {
                if place == 0 { MAX_BONUS } else { result.bonus_for(&similarities[at]) }
            };
            let scored = unplaced.iter().map(|at| (*at, scores[*at] + bonus(*at)));
            let best = scored
                .enumerate()
                .min_by(|(_, a), (_, b)| b.1.total_cmp(&a.1).then_with(|| order(a.0, b.0)));
            let Some((position, (at, _))) = best else { break };
            result.bonuses[at] = bonus(at);
            for (served, similarity) in result.served.iter_mut().zip(&similarities[at]) {
                *served = served.max(*similarity);
            }
            unplaced.swap_remove(position);
        }
        for at in unplaced {
            result.bonuses[at] = result.bonus_for(&similarities[at]);
        }
        result
    }

    /// Returns the bonus that a tool would get if it were placed next, after the hits placed so far. `similarities` are the
    /// cosines of the tool with each need.
    pub(super) fn bonus_for(&self, similarities: &[f32]) -> f32 {
        let gains =
            similarities.iter().zip(&self.served).map(|(similarity, served)| similarity - served);
        MAX_BONUS * gains.fold(0.0, f32::max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn placed(scores: &[f32], similarities: &[Vec<f32>]) -> (Vec<usize>, CoverageBonuses) {
        let result = CoverageBonuses::new(scores, similarities, |a, b| a.cmp(&b));
        let total = |at: &usize| scores[*at] + result.bonuses[*at];
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| total(b).total_cmp(&total(a)));
        (order, result)
    }

    #[test]
    fn a_tool_for_a_second_need_comes_before_another_one_for_the_first() {
        let similarities = [vec![0.6, 0.0], vec![0.6, 0.1], vec![0.0, 0.5]];
        let (order, result) = placed(&[0.8, 0.7, 0.65], &similarities);
        assert_eq!(order, [0, 2, 1]);
        let percent = |value: &f32| (value * 100.0).round();
        assert_eq!(result.bonuses.iter().map(percent).collect::<Vec<_>>(), [40.0, 0.0, 20.0]);
        assert_eq!(
            placed(&[0.8, 0.7, 0.4], &similarities).0,
            [0, 1, 2],
            "only if its own score is high enough"
        );
    }

    #[test]
    fn the_best_stays_the_first() {
        let similarities = [vec![0.1, 0.1], vec![0.9, 0.9], vec![0.0, 0.2]];
        assert_eq!(placed(&[0.51, 0.5, 0.1], &similarities).0, [0, 1, 2]);
        assert!(placed(&[], &[]).0.is_empty());
    }

    proptest! {
        /// Checks that sorting by score gives the order in which the hits were placed.
        #[test]
        fn a_hit_placed_later_never_has_a_higher_score(
            tools in proptest::collection::vec((0.0..1.0_f32, proptest::collection::vec(-0.2..0.9_f32, 3)), 0..40),
        ) {
            let (scores, similarities): (Vec<f32>, Vec<Vec<f32>>) = tools.into_iter().unzip();
            let (order, result) = placed(&scores, &similarities);
            let mut served = vec![0.0_f32; 3];
            for (place, at) in order.into_iter().take(PLACED_HITS).enumerate() {
                let gain = similarities[at].iter().zip(&served).map(|(similarity, served)| similarity - served).fold(0.0, f32::max);
                let gain = if place == 0 { 1.0 } else { gain };
                prop_assert!((result.bonuses[at] - MAX_BONUS * gain).abs() < 1e-6);
                served.iter_mut().zip(&similarities[at]).for_each(|(served, similarity)| *served = served.max(*similarity));
            }
        }
    }
}
