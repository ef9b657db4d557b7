//! The region of a request, from its signature.

use hyper::header::{AUTHORIZATION, HeaderMap};

/// The longest name of a region; names of AWS have up to 25 letters.
const LONGEST: usize = 32;

/// Whether a text can be the name of a region, such as `eu-west-1`: small letters, digits and single hyphens between them.
pub fn is_region(text: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.len() <= LONGEST && text.split('-').all(word)
}

/// The region in the credential scope of Signature Version 4: `Credential=KEY/20250131/eu-west-1/kinesis/aws4_request`.
/// Absent without a signature, and for a signature of several regions.
pub(super) fn signed_for(headers: &HeaderMap) -> Option<&str> {
    let (algorithm, fields) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if algorithm != "AWS4-HMAC-SHA256" {
        return None;
    }
    let mut fields = fields.split(',').map(str::trim);
    let credential = fields.find_map(|field| field.strip_prefix("Credential="))?;
    // The key may have slashes of its own.
    let region = credential.rsplit('/').nth(2)?;
    is_region(region).then_some(region)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn region(authorization: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(authorization).unwrap());
        signed_for(&headers).map(str::to_owned)
    }

    #[test]
    fn the_scope_names_the_region() {
        let signed = |scope: &str| {
            region(&format!(
                "AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, Signature=00"
            ))
        };
        assert_eq!(signed("AKID/20250131/eu-west-1/kinesis/aws4_request").as_deref(), Some("eu-west-1"));
        assert_eq!(
            signed("a/b/20250131/us-gov-west-1/dynamodb/aws4_request").as_deref(),
            Some("us-gov-west-1")
        );
        let bare = "AWS4-HMAC-SHA256 SignedHeaders=host,Credential=k/20250131/local/kinesis/aws4_request,Signature=0";
        assert_eq!(region(bare).as_deref(), Some("local"));
        for other in ["AKID", "AKID/x", "AKID/20250131//kinesis/aws4_request", "k/d/EU:1/s/aws4_request"] {
            assert_eq!(signed(other), None, "{other}");
        }
        assert_eq!(region("Bearer token"), None);
        assert_eq!(
            region("AWS4-ECDSA-P256-SHA256 Credential=AKID/20250131/kinesis/aws4_request, Signature=00"),
            None
        );
        assert_eq!(signed_for(&HeaderMap::new()), None);
    }

    #[test]
    fn a_region_has_a_name_that_arns_can_hold() {
        for good in ["eu-west-1", "us-east-1", "local", "ap-southeast-7"] {
            assert!(is_region(good), "{good}");
        }
        let long = "a".repeat(33);
        for bad in ["", "-", "eu--1", "EU-west-1", "eu west", "eu:1", "eu/1", &long] {
            assert!(!is_region(bad), "{bad}");
        }
    }
}
