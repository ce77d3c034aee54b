//! Times of arrival: rates, order, seeds, traces.

use std::fs;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn times_of(arrival: &Arrival, seed: u64) -> Vec<Duration> {
    let times = arrival.times(MINUTE, Rng::with_seed(seed)).unwrap();
    times.collect()
}

fn between(times: &[Duration], from: u64, to: u64) -> usize {
    let range = Duration::from_secs(from)..Duration::from_secs(to);
    times.iter().filter(|at| range.contains(*at)).count()
}

#[test]
fn a_constant_rate_is_even() {
    let times = times_of(&Arrival::Constant { rate: 50.0 }, 1);
    assert_eq!(times.len(), 3_000);
    for (count, at) in times.iter().enumerate() {
        let wanted = count as f64 / 50.0;
        assert!((at.as_secs_f64() - wanted).abs() < 1e-6, "{count}");
    }
}

#[test]
fn poisson_has_its_rate_and_exponential_gaps() {
    let times = times_of(&Arrival::Poisson { rate: 500.0 }, 7);
    // 30 000 on average, with a standard deviation of 173.
    assert!((29_000..31_000).contains(&times.len()), "{}", times.len());
    let gaps: Vec<f64> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs_f64() * 500.0)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean - 1.0).abs() < 0.05, "{mean}");
    assert!((variance - 1.0).abs() < 0.1, "{variance}");
}

#[test]
fn the_seed_decides() {
    let poisson = Arrival::Poisson { rate: 20.0 };
    assert_eq!(times_of(&poisson, 3), times_of(&poisson, 3));
    assert_ne!(times_of(&poisson, 3), times_of(&poisson, 4));
}

#[test]
fn a_ramp_changes_linearly() {
    for (from, to) in [(0.0, 120.0), (120.0, 0.0), (30.0, 90.0)] {
        let arrival = Arrival::Ramp { from, to };
        let times = times_of(&arrival, 1);
        let total = arrival.expected(MINUTE).unwrap();
        assert!((times.len() as f64 - total).abs() <= 1.0, "{from} to {to}");
        assert!(times.is_sorted());
        for second in [0, 29, 58] {
            let found = between(&times, second, second + 1) as f64;
            let wanted = from + (to - from) * (second as f64 + 0.5) / 60.0;
            assert!(
                (found - wanted).abs() <= 2.0,
                "{from} to {to}: second {second}: {found}"
            );
        }
    }
}

#[test]
fn bursts_come_at_their_times() {
    let arrival = Arrival::Burst {
        base: 10.0,
        peak: 200.0,
        every: Duration::from_secs(20),
        length: Duration::from_secs(2),
    };
    let times = times_of(&arrival, 1);
    assert!(times.is_sorted());
    assert_eq!(between(&times, 0, 20), 200);
    assert_eq!(between(&times, 20, 22), 400);
    assert_eq!(between(&times, 22, 40), 180);
    assert_eq!(between(&times, 40, 42), 400);
    assert_eq!(arrival.expected(MINUTE).unwrap(), times.len() as f64);
}

#[test]
fn a_trace_is_replayed_and_its_faults_have_line_numbers() {
    let folder = std::env::temp_dir().join(format!("tideline-load-trace-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let trace = folder.join("trace");
    fs::write(&trace, "# seconds\n0\n0.5\n\n2.25\n70\n").unwrap();
    assert_eq!(check_trace(&trace).unwrap(), 4);
    let arrival = Arrival::Replay {
        trace: trace.clone(),
    };
    let millis: Vec<u128> = times_of(&arrival, 1)
        .iter()
        .map(Duration::as_millis)
        .collect();
    assert_eq!(millis, [0, 500, 2_250]);
    assert_eq!(arrival.expected(MINUTE).unwrap(), 3.0);
    fs::write(&trace, "0\nsoon\n").unwrap();
    let told = format!("{:#}", check_trace(&trace).unwrap_err());
    assert!(
        told.contains("line 2") && told.contains("\"soon\""),
        "{told}"
    );
    fs::write(&trace, "3\n1\n").unwrap();
    let told = format!("{:#}", check_trace(&trace).unwrap_err());
    assert!(told.contains("earlier"), "{told}");
    fs::remove_dir_all(folder).unwrap();
}
