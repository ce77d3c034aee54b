//! The authenticated user as an extractor.
//!
//! Promise: a handler that takes a [`User`] runs only for a valid token; everything else is
//! answered with 401 and a `WWW-Authenticate` header (RFC 6750, section 3).

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{header::AUTHORIZATION, request::Parts},
};
use events::UserId;

use crate::{Problem, Verifier, token::TokenError};

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// Their id.
    pub id: UserId,
    admin: bool,
}

impl User {
    /// Lets administrators pass.
    ///
    /// # Errors
    /// A 403 problem for everybody else.
    pub fn require_admin(self) -> Result<(), Problem> {
        if self.admin {
            Ok(())
        } else {
            Err(Problem::forbidden("This needs the scope admin."))
        }
    }
}

impl<S> FromRequestParts<S> for User
where
    S: Send + Sync,
    Verifier: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let Some(header) = parts.headers.get(AUTHORIZATION) else {
            return Err(Problem::unauthenticated("A bearer token is needed."));
        };
        let token = header
            .to_str()
            .ok()
            .and_then(|text| text.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim())
            .ok_or_else(|| {
                Problem::unauthenticated(
                    "The Authorization header is not of the form Bearer <token>.",
                )
            })?;
        Verifier::from_ref(state)
            .verify(token)
            .map(|bearer| Self {
                id: bearer.user,
                admin: bearer.admin,
            })
            .map_err(|error: TokenError| Problem::unauthenticated(error.reason()))
    }
}
