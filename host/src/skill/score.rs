//! Which skills come first: the often used and the lately used (SPEC 2.4).

/// Hours after which a use counts half: a week.
const HALF_LIFE: f64 = 168.0;

/// `ln(1 + uses) × 0.5^(age / 168 h)`; 0 for what was never used. A clock that went back counts as no age.
pub fn score(uses: u64, age_hours: f64) -> f64 {
    (uses as f64).ln_1p() * 0.5_f64.powf(age_hours.max(0.0) / HALF_LIFE)
}

/// Sorts by score, highest first, and equal ones by name.
pub fn sort<T>(items: &mut [T], name_and_score: impl Fn(&T) -> (&str, f64)) {
    items.sort_by(|a, b| {
        let ((a_name, a), (b_name, b)) = (name_and_score(a), name_and_score(b));
        b.total_cmp(&a).then_with(|| a_name.cmp(b_name))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_the_formula() {
        assert_eq!(score(0, 5.0), 0.0);
        assert!((score(1, 0.0) - 2.0_f64.ln()).abs() < 1e-12);
        assert!((score(9, 168.0) - 10.0_f64.ln() / 2.0).abs() < 1e-12);
        assert!((score(9, 336.0) - 10.0_f64.ln() / 4.0).abs() < 1e-12);
        assert_eq!(score(3, -7.0), score(3, 0.0));
    }

    #[test]
    fn the_higher_comes_first_and_ties_go_by_name() {
        let mut skills = [("b", 0.0), ("c", 2.0), ("a", 0.0), ("d", 3.0)];
        sort(&mut skills, |(name, score)| (name, *score));
        assert_eq!(skills.map(|(name, _)| name), ["d", "c", "a", "b"]);
    }
}
