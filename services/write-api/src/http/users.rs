//! `POST /v1/users`, for administrators.
//!
//! The handle is the key of the request: 201 for a new account, 200 with the account that has the
//! handle already. So provisioning can be repeated, and who needs a new account looks at the status.

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use database::users::{self, CreateUser};
use events::{Micros, UserId};
use http_api::{Json, Problem, User};
use serde::{Deserialize, Serialize};

use super::{App, error};
use crate::core::validate;

/// The body of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(super) struct NewUserBody {
    handle: String,
}

/// An account.
#[derive(Debug, Serialize)]
struct UserView {
    id: UserId,
    handle: String,
    created_us: Micros,
}

pub(super) async fn create(
    State(app): State<App>,
    user: User,
    Json(request): Json<NewUserBody>,
) -> Result<Response, Problem> {
    user.require_admin()?;
    error::check([validate::handle(&request.handle)])?;
    let client = app.pool.get().await.map_err(error::failed)?;
    let (status, account) = match users::create(&client, &request.handle)
        .await
        .map_err(error::failed)?
    {
        CreateUser::Created(account) => (StatusCode::CREATED, account),
        CreateUser::Exists(account) => (StatusCode::OK, account),
    };
    let view = UserView {
        id: account.id,
        handle: account.handle,
        created_us: account.created_us,
    };
    Ok((status, axum::Json(view)).into_response())
}
