//! Hits that serve each of a request's needs, and not one of them five times.
//!
//! The tools that serve the need which is told best would fill the first places, one like the other. So
//! hits are placed one after another. The best stays the first and gets all that can be had; behind it a
//! tool has more score the nearer it is to a need that those before it are not near to. What that gives
//! only ever gets less as others are placed, so the hits stand in the order of their scores, and fewer of
//! them are the beginning of more.

use std::cmp::Ordering;

/// What a need that nobody serves yet adds, for a tool whose cosine with it is 1. From .3 to .6 it does
/// about as well: training/README.md.
const UNSERVED: f32 = 0.4;
/// Places that are given so. Nobody reads on for long, and each costs a look at every candidate.
const PLACES: usize = 10;

/// What each candidate gets for the needs it serves.
#[derive(Debug, Default)]
pub(super) struct Cover {
    /// In the order of the candidates.
    pub(super) added: Vec<f32>,
    /// How near those who were placed come to each need.
    served: Vec<f32>,
}

impl Cover {
    /// `scores` without it; `near` has for each candidate how near it is to each need; `order` parts
    /// candidates with the same score.
    pub(super) fn new(
        scores: &[f32],
        near: &[Vec<f32>],
        order: impl Fn(usize, usize) -> Ordering,
    ) -> Self {
        let needs = near.first().map_or(0, Vec::len);
        let mut cover = Self { added: vec![0.0; scores.len()], served: vec![0.0; needs] };
        let mut open: Vec<usize> = (0..scores.len()).collect();
        for place in 0..PLACES {
            let adds = |at: usize| if place == 0 { UNSERVED } else { cover.adds(&near[at]) };
            let scored = open.iter().map(|at| (*at, scores[*at] + adds(*at)));
            let best = scored
                .enumerate()
                .min_by(|(_, a), (_, b)| b.1.total_cmp(&a.1).then_with(|| order(a.0, b.0)));
            let Some((found, (at, _))) = best else { break };
            cover.added[at] = adds(at);
            for (served, near) in cover.served.iter_mut().zip(&near[at]) {
                *served = served.max(*near);
            }
            open.swap_remove(found);
        }
        for at in open {
            cover.added[at] = cover.adds(&near[at]);
        }
        cover
    }

    /// What a tool that is so near to each need has for it, beside those who were placed.
    pub(super) fn adds(&self, near: &[f32]) -> f32 {
        let unserved = near.iter().zip(&self.served).map(|(near, served)| near - served);
        UNSERVED * unserved.fold(0.0, f32::max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn placed(scores: &[f32], near: &[Vec<f32>]) -> (Vec<usize>, Cover) {
        let cover = Cover::new(scores, near, |a, b| a.cmp(&b));
        let total = |at: &usize| scores[*at] + cover.added[*at];
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| total(b).total_cmp(&total(a)));
        (order, cover)
    }

    #[test]
    fn a_second_need_goes_before_more_of_the_first() {
        let near = [vec![0.6, 0.0], vec![0.6, 0.1], vec![0.0, 0.5]];
        let (order, cover) = placed(&[0.8, 0.7, 0.65], &near);
        assert_eq!(order, [0, 2, 1]);
        let to = |value: &f32| (value * 100.0).round();
        assert_eq!(cover.added.iter().map(to).collect::<Vec<_>>(), [40.0, 0.0, 20.0]);
        assert_eq!(placed(&[0.8, 0.7, 0.4], &near).0, [0, 1, 2], "if it fits well enough");
    }

    #[test]
    fn the_best_stays_the_first() {
        let near = [vec![0.1, 0.1], vec![0.9, 0.9], vec![0.0, 0.2]];
        assert_eq!(placed(&[0.51, 0.5, 0.1], &near).0, [0, 1, 2]);
        assert!(placed(&[], &[]).0.is_empty());
    }

    proptest! {
        /// By score alone one gets the very order in which they were placed.
        #[test]
        fn nobody_placed_later_has_more(
            tools in proptest::collection::vec((0.0..1.0_f32, proptest::collection::vec(-0.2..0.9_f32, 3)), 0..40),
        ) {
            let (scores, near): (Vec<f32>, Vec<Vec<f32>>) = tools.into_iter().unzip();
            let (order, cover) = placed(&scores, &near);
            let mut served = vec![0.0_f32; 3];
            for (place, at) in order.into_iter().take(PLACES).enumerate() {
                let gain = near[at].iter().zip(&served).map(|(near, served)| near - served).fold(0.0, f32::max);
                let gain = if place == 0 { 1.0 } else { gain };
                prop_assert!((cover.added[at] - UNSERVED * gain).abs() < 1e-6);
                served.iter_mut().zip(&near[at]).for_each(|(served, near)| *served = served.max(*near));
            }
        }
    }
}
