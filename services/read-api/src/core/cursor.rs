//! Cursors: opaque, versioned, and checked against tampering and against use in another list.
//!
//! ```text
//!  base64url( version: 1 byte │ position: 8 bytes, big endian │ first 16 bytes of HMAC-SHA256 )
//! ```
//! The HMAC covers what the list is and whose, so a cursor of one list is refused in another. It
//! hides nothing: a position is a post or user id that the reader has seen, or could have.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use events::UserId;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The one version there is.
const VERSION: u8 = 1;
const POSITION_BYTES: usize = 8;
const TAG_BYTES: usize = 16;

/// What the key of cursors is derived for.
pub const KEY_PURPOSE: &str = "tideline read-api cursor";

/// Which list a cursor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// The home timeline of a reader.
    Home(UserId),
    /// The posts of an author.
    Posts(UserId),
    /// Who follows a user.
    Followers(UserId),
    /// Whom a user follows.
    Following(UserId),
}

/// Why a text is not a cursor of this list. Answered with 400, and no reason given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// Not base64url, or not of the right length.
    #[error("malformed cursor")]
    Malformed,
    /// Of a version that this program does not know.
    #[error("unknown cursor version {0}")]
    Version(u8),
    /// Changed, made with another key, or of another list.
    #[error("the cursor does not belong to this list")]
    Forged,
}

/// Makes and checks cursors.
#[derive(Clone)]
pub struct Cursors([u8; 32]);

impl Cursors {
    /// Cursors under this key.
    #[must_use]
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The cursor that goes on below `position`.
    #[must_use]
    pub fn seal(&self, list: List, position: i64) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend(position.to_be_bytes());
        let tag = self.mac(list, &bytes).finalize().into_bytes();
        bytes.extend(tag.iter().take(TAG_BYTES));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position of a cursor of `list`.
    ///
    /// # Errors
    /// [`CursorError`] for everything that [`Cursors::seal`] did not make for this list.
    pub fn open(&self, list: List, text: &str) -> Result<i64, CursorError> {
        let bytes = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|_| CursorError::Malformed)?;
        // The version stands first, so that later versions may have another length.
        match bytes.first() {
            None => return Err(CursorError::Malformed),
            Some(&VERSION) => {}
            Some(&other) => return Err(CursorError::Version(other)),
        }
        let (signed, tag) = bytes
            .split_at_checked(1 + POSITION_BYTES)
            .ok_or(CursorError::Malformed)?;
        if tag.len() != TAG_BYTES {
            return Err(CursorError::Malformed);
        }
        self.mac(list, signed)
            .verify_truncated_left(tag)
            .map_err(|_| CursorError::Forged)?;
        let position = signed
            .split_first_chunk::<1>()
            .and_then(|(_, rest)| rest.try_into().ok());
        position
            .map(i64::from_be_bytes)
            .ok_or(CursorError::Malformed)
    }

    fn mac(&self, list: List, signed: &[u8]) -> Hmac<Sha256> {
        let (kind, owner) = match list {
            List::Home(owner) => (b'h', owner),
            List::Posts(owner) => (b'p', owner),
            List::Followers(owner) => (b'r', owner),
            List::Following(owner) => (b'g', owner),
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0)
            .expect("HMAC takes a key of any length (RFC 2104)");
        mac.update(&[kind]);
        mac.update(&owner.0.to_be_bytes());
        mac.update(signed);
        mac
    }
}

impl fmt::Debug for Cursors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cursors(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOME: List = List::Home(UserId(7));

    fn cursors() -> Cursors {
        Cursors::new([1; 32])
    }

    #[test]
    fn another_list_key_or_version_is_refused() {
        let text = cursors().seal(HOME, 42);
        for list in [
            List::Home(UserId(8)),
            List::Posts(UserId(7)),
            List::Followers(UserId(7)),
            List::Following(UserId(7)),
        ] {
            assert_eq!(
                cursors().open(list, &text),
                Err(CursorError::Forged),
                "{list:?}"
            );
        }
        assert_eq!(
            Cursors::new([2; 32]).open(HOME, &text),
            Err(CursorError::Forged)
        );
        let mut bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        bytes[0] = 2;
        assert_eq!(
            cursors().open(HOME, &URL_SAFE_NO_PAD.encode(bytes)),
            Err(CursorError::Version(2))
        );
    }

    #[test]
    fn text_that_is_no_cursor_is_refused() {
        let text = cursors().seal(HOME, 42);
        let (short, long) = (&text[..text.len() - 4], format!("{text}AAAA"));
        for bad in [
            "",
            "AQ",
            "not base64!",
            short,
            long.as_str(),
            &format!("{text}="),
        ] {
            assert_eq!(
                cursors().open(HOME, bad),
                Err(CursorError::Malformed),
                "{bad}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_cursor_comes_back(position: i64) {
            prop_assert_eq!(cursors().open(HOME, &cursors().seal(HOME, position)), Ok(position));
        }

        #[test]
        fn any_changed_bit_is_refused(position: i64, bit in 0_usize..25 * 8) {
            let mut bytes = URL_SAFE_NO_PAD.decode(cursors().seal(HOME, position)).unwrap();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(cursors().open(HOME, &URL_SAFE_NO_PAD.encode(bytes)).is_err());
        }

        #[test]
        fn arbitrary_text_never_panics(text in ".{0,60}") {
            prop_assert!(cursors().open(HOME, &text).is_err());
        }
    }
}
