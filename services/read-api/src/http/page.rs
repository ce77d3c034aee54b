//! What all lists share: `cursor`, `limit`, the echo of the limit, and the link to the next page.

use axum::{
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use http_api::Problem;
use serde::{Deserialize, Serialize};

use super::error;
use crate::core::cursor::{Cursors, List};

const DEFAULT_LIMIT: i64 = 20;
const MAX_LIMIT: i64 = 100;

/// The query of a list.
#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    cursor: Option<String>,
    limit: Option<i64>,
}

impl PageQuery {
    /// The limit that is used: 1 to 100, 20 when none was sent.
    pub(super) fn limit(&self) -> i64 {
        self.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT)
    }

    /// Where to go on; none at the head.
    pub(super) fn position(&self, cursors: &Cursors, list: List) -> Result<Option<i64>, Problem> {
        self.cursor
            .as_deref()
            .map(|text| cursors.open(list, text))
            .transpose()
            .map_err(error::cursor)
    }
}

/// A page as it is answered: the items under a name of their own, beside it the rest.
#[derive(Debug, Serialize)]
struct PageView<T> {
    #[serde(flatten)]
    items: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    limit: i64,
}

/// Answers a page, with `Link: rel="next"` (RFC 8288) when there is a next one.
pub(super) fn answer<T: Serialize>(
    path: &str,
    items: T,
    next_cursor: Option<String>,
    limit: i64,
) -> Response {
    let mut headers = HeaderMap::new();
    if let Some(cursor) = &next_cursor {
        let link = format!("<{path}?cursor={cursor}&limit={limit}>; rel=\"next\"");
        let value =
            HeaderValue::from_str(&link).expect("paths, base64url and digits are visible ASCII");
        headers.insert(header::LINK, value);
    }
    (
        headers,
        axum::Json(PageView {
            items,
            next_cursor,
            limit,
        }),
    )
        .into_response()
}

/// Takes the row that was read beyond the limit away, and answers whether it was there.
pub(super) fn cut_extra<T>(rows: &mut Vec<T>, limit: i64) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    more
}
