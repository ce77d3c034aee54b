//! Bearer tokens: JSON Web Tokens signed with HS256.
//!
//! Owns the key, its length rule, the claims, minting and verifying. The key never leaves this
//! type: `Debug` is a fixed text, and other uses get a derived key ([`Key::derive`]).
//!
//! A token is trusted for one thing only: `sub` is the user who asks.

use std::{fmt, sync::Arc};

use events::UserId;
use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// The shortest secret that is accepted: the output size of SHA-256 (RFC 7518, section 3.2).
pub const MIN_SECRET_BYTES: usize = 32;

/// The scope that administers accounts.
pub const ADMIN: &str = "admin";

/// Seconds by which the clocks of minter and verifier may differ.
const LEEWAY_SECONDS: u64 = 30;

/// The secret that signs tokens.
#[derive(Clone)]
pub struct Key(Arc<[u8]>);

/// The secret is too short to be safe with HS256.
#[derive(Debug, thiserror::Error)]
#[error("the token secret has {bytes} bytes, at least {MIN_SECRET_BYTES} are needed")]
pub struct ShortSecret {
    /// Its length.
    pub bytes: usize,
}

impl Key {
    /// A key of these bytes.
    ///
    /// # Errors
    /// [`ShortSecret`] below [`MIN_SECRET_BYTES`].
    pub fn new(secret: &[u8]) -> Result<Self, ShortSecret> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(ShortSecret {
                bytes: secret.len(),
            });
        }
        Ok(Self(secret.into()))
    }

    /// A key for another purpose, from which neither this one nor its other uses can be computed.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0)
            .expect("HMAC takes a key of any length (RFC 2104)");
        mac.update(purpose.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(hidden)")
    }
}

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The user: a decimal 64-bit integer.
    pub sub: String,
    /// When it ends: seconds since 1970-01-01 UTC.
    pub exp: u64,
    /// Space-separated scopes; [`ADMIN`] is the only one with a meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// Signs `claims`.
///
/// # Errors
/// Only when the signing library fails, which it has no reason to do with this key and form.
pub fn mint(key: &Key, claims: &Claims) -> Result<String, jsonwebtoken::errors::Error> {
    encode(
        &Header::new(Algorithm::HS256),
        claims,
        &EncodingKey::from_secret(&key.0),
    )
}

/// Checks tokens. Cheap to clone.
#[derive(Clone)]
pub struct Verifier(Arc<(DecodingKey, Validation)>);

/// Who a valid token speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bearer {
    /// `sub`
    pub user: UserId,
    /// Whether the scope has [`ADMIN`].
    pub admin: bool,
}

/// Why a token is refused. The reasons are told to the client by [`TokenError::reason`] alone.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It is past its `exp`.
    #[error("the token has expired")]
    Expired,
    /// It is not a token signed with this key by HS256, or lacks a claim.
    #[error("the token is not valid")]
    Invalid,
    /// `sub` is not a user id.
    #[error("the subject of the token is not a user id")]
    Subject,
}

impl Verifier {
    /// A verifier for tokens signed with `key`.
    #[must_use]
    pub fn new(key: &Key) -> Self {
        // Naming one algorithm here is what shuts out `none` and key confusion.
        let mut validation = Validation::new(Algorithm::HS256);
        validation.leeway = LEEWAY_SECONDS;
        validation.set_required_spec_claims(&["exp", "sub"]);
        validation.validate_aud = false;
        Self(Arc::new((DecodingKey::from_secret(&key.0), validation)))
    }

    /// Checks signature, end and subject.
    ///
    /// # Errors
    /// [`TokenError`], which tells the client no more than it has to know.
    pub fn verify(&self, token: &str) -> Result<Bearer, TokenError> {
        let (key, validation) = &*self.0;
        let claims = decode::<Claims>(token, key, validation)
            .map_err(|error| match error.kind() {
                jsonwebtoken::errors::ErrorKind::ExpiredSignature => TokenError::Expired,
                _ => TokenError::Invalid,
            })?
            .claims;
        let user: UserId = claims.sub.parse().map_err(|_| TokenError::Subject)?;
        let admin = claims
            .scope
            .is_some_and(|scope| scope.split(' ').any(|word| word == ADMIN));
        Ok(Bearer { user, admin })
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier(hidden)")
    }
}

impl TokenError {
    /// A sentence for the client.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Expired => "The token has expired.",
            Self::Invalid => "The token is not valid.",
            Self::Subject => "The subject of the token is not a user id.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

    fn key() -> Key {
        Key::new(SECRET).unwrap()
    }

    fn claims() -> Claims {
        Claims {
            sub: "7".into(),
            exp: jsonwebtoken::get_current_timestamp() + 60,
            scope: None,
        }
    }

    #[test]
    fn a_minted_token_is_verified() {
        let token = mint(&key(), &claims()).unwrap();
        assert_eq!(
            Verifier::new(&key()).verify(&token).unwrap(),
            Bearer {
                user: UserId(7),
                admin: false
            }
        );
    }

    #[test]
    fn the_admin_scope_is_a_whole_word() {
        for (scope, admin) in [
            ("admin", true),
            ("read admin", true),
            ("administrator", false),
            ("", false),
        ] {
            let token = mint(
                &key(),
                &Claims {
                    scope: Some(scope.into()),
                    ..claims()
                },
            )
            .unwrap();
            assert_eq!(
                Verifier::new(&key()).verify(&token).unwrap().admin,
                admin,
                "{scope}"
            );
        }
    }

    #[test]
    fn bad_tokens_are_refused() {
        let verifier = Verifier::new(&key());
        let old = Claims {
            exp: jsonwebtoken::get_current_timestamp() - LEEWAY_SECONDS - 5,
            ..claims()
        };
        assert!(matches!(
            verifier.verify(&mint(&key(), &old).unwrap()),
            Err(TokenError::Expired)
        ));
        let named = Claims {
            sub: "alice".into(),
            ..claims()
        };
        assert!(matches!(
            verifier.verify(&mint(&key(), &named).unwrap()),
            Err(TokenError::Subject)
        ));
        let other = Key::new(b"ffffffffffffffffffffffffffffffff").unwrap();
        assert!(matches!(
            verifier.verify(&mint(&other, &claims()).unwrap()),
            Err(TokenError::Invalid)
        ));
        let wide = encode(
            &Header::new(Algorithm::HS384),
            &claims(),
            &EncodingKey::from_secret(SECRET),
        )
        .unwrap();
        assert!(matches!(verifier.verify(&wide), Err(TokenError::Invalid)));
        // {"alg":"none"} with an empty signature.
        let none = "eyJhbGciOiJub25lIn0.eyJzdWIiOiI3IiwiZXhwIjo5OTk5OTk5OTk5fQ.";
        for text in [none, "", "a.b.c"] {
            assert!(
                matches!(verifier.verify(text), Err(TokenError::Invalid)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_short_secret_is_refused_and_none_is_shown() {
        assert_eq!(Key::new(&SECRET[1..]).unwrap_err().bytes, 31);
        assert_eq!(format!("{:?}", key()), "Key(hidden)");
        assert_ne!(key().derive("a"), key().derive("b"));
    }
}
