//! Accounts. Never deleted, so that an id that existed once can be relied upon.

use events::{Micros, UserId};
use tokio_postgres::Row;

use crate::{
    Client, Error,
    statement::{self, column},
};

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its id.
    pub id: UserId,
    /// Its unique name.
    pub handle: String,
    /// When it was made.
    pub created_us: Micros,
}

/// What became of [`create`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateUser {
    /// A new account.
    Created(User),
    /// The handle is taken, by this account.
    Exists(User),
}

/// Makes an account.
///
/// # Errors
/// See [`Error::class`].
pub async fn create(client: &Client, handle: &str) -> Result<CreateUser, Error> {
    const INSERT: &str = "insert into tideline.users (handle) values ($1)
        on conflict (handle) do nothing returning id, handle, tideline.micros(created_at)";
    const EXISTING: &str =
        "select id, handle, tideline.micros(created_at) from tideline.users where handle = $1";
    if let Some(row) = statement::optional(client, "create a user", INSERT, &[&handle]).await? {
        return read(&row).map(CreateUser::Created);
    }
    let row = statement::one(client, "read a user by handle", EXISTING, &[&handle]).await?;
    read(&row).map(CreateUser::Exists)
}

/// The account with this id.
///
/// # Errors
/// See [`Error::class`].
pub async fn get(client: &Client, id: UserId) -> Result<Option<User>, Error> {
    const SQL: &str =
        "select id, handle, tideline.micros(created_at) from tideline.users where id = $1";
    let row = statement::optional(client, "read a user", SQL, &[&id.0]).await?;
    row.as_ref().map(read).transpose()
}

/// Whether there is an account with this id.
///
/// # Errors
/// See [`Error::class`].
pub async fn exists(client: &Client, id: UserId) -> Result<bool, Error> {
    const SQL: &str = "select exists (select from tideline.users where id = $1)";
    let row = statement::one(client, "look for a user", SQL, &[&id.0]).await?;
    column(&row, 0)
}

fn read(row: &Row) -> Result<User, Error> {
    Ok(User {
        id: UserId(column(row, 0)?),
        handle: column(row, 1)?,
        created_us: Micros(column(row, 2)?),
    })
}
