//! The statistics of a row: mean, deviation, error and quantiles of its rounds.

/// The arithmetic mean, if there is any value.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation of a sample (n - 1), from two values on.
pub(crate) fn stddev(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Half the 99.9 % confidence interval of the mean (Student's t), from two values on.
pub(crate) fn error(values: &[f64]) -> Option<f64> {
    let deviation = stddev(values)?;
    Some(student_t(values.len() - 1) * deviation / (values.len() as f64).sqrt())
}

/// The middle value, or the mean of the two middle ones.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The quantile at `q` from 0 to 1, between neighbours by proportion (type 7 of Hyndman and Fan).
pub(crate) fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let place = q * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[(place.ceil() as usize).min(last)]);
    Some(low + (high - low) * place.fract())
}

/// A ratio and where the middle half of its rounds lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// `ours` over `theirs`, round by round: the median and quartiles of the ratios of each round, so that what
/// disturbs both at once cancels. Both have the same rounds.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> Option<Ratio> {
    assert_eq!(ours.len(), theirs.len(), "entry k of every row is the same round");
    spread(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect())
}

/// `ours` over `theirs` where one of them ran apart, so that no entry belongs to another: every entry of the
/// shorter one against the median of the longer one.
pub(crate) fn ratio_by_median(ours: &[f64], theirs: &[f64]) -> Option<Ratio> {
    if ours.len() <= theirs.len() {
        let theirs = median(theirs)?;
        spread(ours.iter().map(|ours| ours / theirs).collect())
    } else {
        let ours = median(ours)?;
        spread(theirs.iter().map(|theirs| ours / theirs).collect())
    }
}

fn spread(ratios: Vec<f64>) -> Option<Ratio> {
    Some(Ratio { median: median(&ratios)?, low: quantile(&ratios, 0.25)?, high: quantile(&ratios, 0.75)? })
}

/// The two-sided 99.9 % point of Student's t. The table goes to 30 degrees of freedom; past it 1/df is a
/// straight line between its points, which is good to three decimals.
fn student_t(df: usize) -> f64 {
    const FIRST: [f64; 30] = [
        636.619, 31.599, 12.924, 8.610, 6.869, 5.959, 5.408, 5.041, 4.781, 4.587, 4.437, 4.318, 4.221, 4.140,
        4.073, 4.015, 3.965, 3.922, 3.883, 3.850, 3.819, 3.792, 3.768, 3.745, 3.725, 3.707, 3.690, 3.674,
        3.659, 3.646,
    ];
    const FURTHER: [(f64, f64); 5] =
        [(30.0, 3.646), (40.0, 3.551), (60.0, 3.460), (120.0, 3.373), (f64::INFINITY, 3.291)];
    match df {
        0 => f64::NAN,
        1..=30 => FIRST[df - 1],
        _ => {
            let place = 1.0 / df as f64;
            let pair =
                FURTHER.windows(2).find(|pair| place >= 1.0 / pair[1].0).expect("the last point is infinity");
            let ((df0, t0), (df1, t1)) = (pair[0], pair[1]);
            let (x0, x1) = (1.0 / df0, 1.0 / df1);
            t1 + (t0 - t1) * (place - x1) / (x0 - x1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(seen: Option<f64>, wanted: f64) {
        let seen = seen.expect("a figure");
        assert!((seen - wanted).abs() < 1e-3 * wanted.abs().max(1.0), "{seen} is not {wanted}");
    }

    #[test]
    fn mean_and_deviation() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        near(mean(&values), 5.0);
        near(stddev(&values), (32.0_f64 / 7.0).sqrt());
        // t for 7 degrees of freedom is 5.408.
        near(error(&values), 5.408 * (32.0_f64 / 7.0).sqrt() / 8.0_f64.sqrt());
    }

    #[test]
    fn too_few_values_have_no_figure() {
        assert_eq!(mean(&[]), None);
        assert_eq!(median(&[]), None);
        assert_eq!(stddev(&[1.0]), None);
        assert_eq!(error(&[1.0]), None);
        assert_eq!(error(&[]), None);
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        let values = [4.0, 1.0, 3.0, 2.0];
        near(median(&values), 2.5);
        near(quantile(&values, 0.25), 1.75);
        near(quantile(&values, 0.0), 1.0);
        near(quantile(&values, 1.0), 4.0);
        near(median(&[7.0]), 7.0);
    }

    #[test]
    fn student_t_follows_the_tables() {
        for (df, t) in
            [(1, 636.619), (10, 4.587), (29, 3.659), (30, 3.646), (35, 3.591), (50, 3.496), (100, 3.390)]
        {
            near(Some(student_t(df)), t);
        }
        near(Some(student_t(1_000_000)), 3.291);
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // One slow round of both leaves the ratio at 2; the ratio of the means would say the same only by
        // luck.
        let ours = [2.0, 200.0, 2.2];
        let theirs = [1.0, 100.0, 1.0];
        let seen = ratio(&ours, &theirs).expect("a ratio");
        near(Some(seen.median), 2.0);
        near(Some(seen.low), 2.0);
        near(Some(seen.high), 2.1);
    }

    #[test]
    fn a_peer_that_runs_apart_is_compared_by_medians() {
        let seen = ratio_by_median(&[4.0, 6.0], &[1.0, 2.0, 3.0]).expect("a ratio");
        near(Some(seen.median), 2.5);
        let seen = ratio_by_median(&[1.0, 2.0, 3.0], &[4.0, 8.0]).expect("a ratio");
        near(Some(seen.median), 0.375);
    }
}
