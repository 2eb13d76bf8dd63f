//! Certificates for webhooks where nobody on the cluster issues them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::{Timestamp, tz::TimeZone};
use olmkit_bundle::manifests::Certificate;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use crate::exit::Failure;

/// How long the certificates are valid: nobody renews them.
const YEARS: i32 = 10;

/// A certificate for every Service, all of one new authority. The authority's key is not kept.
pub(super) fn issue(
    services: &BTreeSet<String>,
    namespace: &str,
) -> Result<BTreeMap<String, Certificate>, Failure> {
    let fail = |error: rcgen::Error| Failure::incomplete(format!("cannot make a certificate: {error}"));
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let (year, month) = (i32::from(today.year()), today.month().unsigned_abs());
    // A day that every month has; a clock that is a little behind does not refuse the certificate.
    let dates = (date_time_ymd(year, month, 1), date_time_ymd(year + YEARS, month, 1));
    let params = |names: Vec<String>, common: &str| -> Result<CertificateParams, Failure> {
        let mut params = CertificateParams::new(names).map_err(fail)?;
        params.distinguished_name.push(DnType::CommonName, common);
        (params.not_before, params.not_after) = dates;
        Ok(params)
    };
    let mut authority = params(Vec::new(), &format!("webhooks of {namespace}"))?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().map_err(fail)?;
    let root = authority.self_signed(&key).map_err(fail)?.pem();
    let issuer = Issuer::new(authority, key);
    let mut issued = BTreeMap::new();
    for service in services {
        let host = format!("{service}.{namespace}");
        let names = vec![host.clone(), format!("{host}.svc"), format!("{host}.svc.cluster.local")];
        // A common name has 64 characters at most.
        let common: String = host.chars().take(64).collect();
        let mut params = params(names, &common)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(fail)?;
        let certificate = params.signed_by(&key, &issuer).map_err(fail)?.pem();
        let one = Certificate { authority: root.clone(), certificate, key: key.serialize_pem() };
        issued.insert(service.clone(), one);
    }
    Ok(issued)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::issue;

    #[test]
    fn every_service_has_a_certificate_of_one_authority() {
        let services: BTreeSet<String> = ["a-service".to_owned(), "b-service".to_owned()].into();
        let issued = issue(&services, "kitchen").unwrap();
        assert_eq!(issued.len(), 2);
        assert_eq!(issued["a-service"].authority, issued["b-service"].authority);
        assert!(issued["a-service"].certificate.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(issued["a-service"].key.contains("PRIVATE KEY"));
    }
}
