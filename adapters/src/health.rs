//! Whether a worker does its work: [`Control::health`](crate::Control::health).

use serde::Serialize;
use std::fmt;

/// The health of a worker: whether the worker does its work, and the faults found, in words.
///
/// It is shown as one line: `healthy`, or `unhealthy: ` and the reasons, and then the remarks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Health {
    healthy: bool,
    reasons: Vec<String>,
    remarks: Vec<String>,
}

impl Health {
    /// Healthy unless there is a reason.
    pub(crate) fn of(reasons: Vec<String>, remarks: Vec<String>) -> Self {
        Self { healthy: reasons.is_empty(), reasons, remarks }
    }

    /// Whether the process can be left alone.
    pub fn is_healthy(&self) -> bool {
        self.healthy
    }

    /// The faults, each as a sentence. Empty if the worker is healthy.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// What a person should know and a new start does not change, each as a sentence: a shard that does not move, above all.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.healthy { "healthy" } else { "unhealthy" })?;
        for (n, sentence) in self.reasons.iter().chain(&self.remarks).enumerate() {
            write!(f, "{}{sentence}", if n == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_line_of_reasons_and_then_remarks() {
        let sentences = |sentences: &[&str]| sentences.iter().map(|text| (*text).to_owned()).collect();
        let well = Health::of(Vec::new(), Vec::new());
        assert_eq!((well.is_healthy(), well.to_string().as_str()), (true, "healthy"));
        let slow = Health::of(Vec::new(), sentences(&["shard-1 hangs"]));
        assert_eq!((slow.is_healthy(), slow.to_string().as_str()), (true, "healthy: shard-1 hangs"));
        let ill = Health::of(sentences(&["it has ended"]), sentences(&["shard-1 hangs"]));
        assert_eq!(
            (ill.is_healthy(), ill.to_string().as_str()),
            (false, "unhealthy: it has ended; shard-1 hangs")
        );
        assert_eq!(
            serde_json::to_value(&ill).unwrap(),
            serde_json::json!({"healthy": false, "reasons": ["it has ended"], "remarks": ["shard-1 hangs"]})
        );
    }
}
