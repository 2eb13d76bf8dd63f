//! A CA, and the certificates that it signs, as PEM.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

/// A CA.
pub(crate) struct Authority {
    params: CertificateParams,
    key: KeyPair,
    /// Its certificate.
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        Self::with(name, |_| ())
    }

    /// One whose certificate is changed before it is made.
    pub(crate) fn with(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = params(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.extended_key_usages.clear();
        change(&mut params);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { params, key, pem }
    }

    /// A CA that this one signs.
    #[allow(dead_code, reason = "not every test program needs it")]
    pub(crate) fn authority(&self, name: &str) -> Self {
        let other = Self::new(name);
        let issuer = Issuer::from_params(&self.params, &self.key);
        let pem = other.params.signed_by(&other.key, &issuer).unwrap().pem();
        Self { pem, ..other }
    }

    /// A certificate and its key.
    pub(crate) fn sign(&self, name: &str) -> [String; 2] {
        self.sign_with(name, |_| ())
    }

    /// The same, changed before it is signed.
    pub(crate) fn sign_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> [String; 2] {
        let key = KeyPair::generate().unwrap();
        let mut params = params(name);
        change(&mut params);
        let issuer = Issuer::from_params(&self.params, &self.key);
        [params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem()]
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([format!("{name}.example.com")]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2001, 1, 1);
    params.not_after = date_time_ymd(4000, 1, 1);
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params
}
