//! `tideline epoch`.

use database::{Error, delivery_ledger};
use events::{EventId, Stage as LedgerStage};

use crate::stage::Stage;

#[tokio::test]
async fn an_epoch_is_shown_and_a_new_one_begins_with_higher_ids() {
    let stage = Stage::new().await;
    let (_, before) = stage.delivered("a").await;
    let said = stage.tideline(&["epoch"]);
    assert_eq!(said.code, Some(0), "{}", said.failure);
    said.has("epoch     1, begun on system ");
    said.has(&format!(
        "highest in the outbox {before}, last one drawn {before}"
    ));

    let said = stage.tideline(&["epoch", "bump", "--by", "5000"]);
    assert_eq!(said.code, Some(0), "{}", said.failure);
    said.has("epoch     2 begun, it was 1");
    said.has(&format!("ids       raised from {before} to "));
    let (_, after) = stage.post("b").await;
    assert!(after.0 > before.0 + 5_000, "{before} {after}");

    let client = stage.client().await;
    let refused = delivery_ledger::record(&client, LedgerStage::Published, &[EventId(1)], 1).await;
    assert!(matches!(refused, Err(Error::OtherEpoch { current: 2, .. })));
    drop(client);
    // The rows of the last hour are doubted.
    assert!(!stage.has(LedgerStage::Delivered, before).await);

    for refused in ["0", "-1", "x"] {
        let said = stage.tideline(&["epoch", "bump", "--by", refused]);
        assert_eq!(said.code, Some(2), "{refused}");
    }
}
