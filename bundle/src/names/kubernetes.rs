//! What Kubernetes demands of names, labels and their values (apimachinery `pkg/util/validation`).

/// Checks a qualified name: the key of a label or annotation, `NAME` or `DNS-SUBDOMAIN/NAME`.
///
/// # Errors
/// What is wrong with it.
pub fn check_qualified_name(text: &str) -> Result<(), &'static str> {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    if prefix.is_some_and(|prefix| check_subdomain(prefix).is_err()) {
        Err("the part before `/` is not a DNS-1123 subdomain")
    } else if name.is_empty() {
        Err("it has no name")
    } else {
        check_label_value(name)
    }
}

/// Checks a DNS-1123 label.
///
/// # Errors
/// What is wrong with it.
pub fn check_label(text: &str) -> Result<(), &'static str> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match text.as_bytes() {
        [] => Err("it is empty"),
        bytes if bytes.len() > 63 => Err("it is longer than 63 characters"),
        bytes if !bytes.iter().all(|byte| inner(*byte)) => {
            Err("only lower case letters, digits and `-` are allowed")
        }
        [b'-', ..] | [.., b'-'] => Err("it starts or ends with `-`"),
        _ => Ok(()),
    }
}

/// Checks a DNS-1035 label: a DNS-1123 label that starts with a letter.
///
/// # Errors
/// What is wrong with it.
pub fn check_dns_1035_label(text: &str) -> Result<(), &'static str> {
    check_label(text)?;
    if text.starts_with(|c: char| c.is_ascii_digit()) { Err("it starts with a digit") } else { Ok(()) }
}

/// Checks what only has to fit into a path: the names of roles and their bindings.
///
/// # Errors
/// What is wrong with it.
pub fn check_path_segment(text: &str) -> Result<(), &'static str> {
    if matches!(text, "." | "..") {
        Err("it is a step of a path")
    } else if text.contains(['/', '%']) {
        Err("`/` and `%` are not allowed")
    } else {
        Ok(())
    }
}

/// Checks a DNS-1123 subdomain.
///
/// # Errors
/// What is wrong with it.
pub fn check_subdomain(text: &str) -> Result<(), &'static str> {
    if text.len() > 253 {
        return Err("it is longer than 253 characters");
    }
    text.split('.').try_for_each(|part| match check_label(part) {
        Err("it is longer than 63 characters") | Ok(()) => Ok(()),
        Err("it is empty") if text.is_empty() => Err("it is empty"),
        Err("it is empty") => Err("a part between dots is empty"),
        Err("it starts or ends with `-`") => Err("a part between dots starts or ends with `-`"),
        Err(_) => Err("only lower case letters, digits, `-` and `.` are allowed"),
    })
}

/// Checks a label value; an empty one is fine.
///
/// # Errors
/// What is wrong with it.
pub fn check_label_value(text: &str) -> Result<(), &'static str> {
    let bytes = text.as_bytes();
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_end = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    if bytes.len() > 63 {
        Err("it is longer than 63 characters")
    } else if !bytes.iter().all(|byte| inner(*byte)) {
        Err("only letters, digits, `-`, `_` and `.` are allowed")
    } else if !is_end(bytes.first()) || !is_end(bytes.last()) {
        Err("it starts or ends with something other than a letter or digit")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names() {
        for good in ["app", "app.kubernetes.io/name", "a_b.C-d"] {
            assert_eq!(check_qualified_name(good), Ok(()), "{good}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "A/b", "-a", "a b", &"a".repeat(64)] {
            assert!(check_qualified_name(bad).is_err(), "{bad}");
        }
    }
}
