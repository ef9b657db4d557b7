//! Tables over time: creation, change, deletion, and the operations allowed meanwhile.

use super::expr::KeyCondition;
use super::testing::*;
use super::*;

fn dynamo() -> Dynamo {
    let config = DynamoConfig { create_ms: 100, backfill_ms: 50, delete_ms: 30, ..DynamoConfig::default() };
    Dynamo::new(config)
}

fn put_at(dynamo: &mut Dynamo, now: i64, item: Item) -> DynamoResult<WriteReply> {
    dynamo.put_item(now, &put_of(item))
}

fn owned(dynamo: &mut Dynamo, now: i64) -> DynamoResult<usize> {
    let key = KeyCondition::partition("owner", s("w"));
    let query = query(Some("late"), key);
    dynamo.query(now, &query).map(|page| page.count)
}

fn change(indexes: Vec<IndexChange>) -> UpdateTable {
    UpdateTable { name: "tab".into(), indexes, ..UpdateTable::default() }
}

#[test]
fn a_table_is_creating_then_active_then_deleting_then_gone() {
    let mut dynamo = dynamo();
    let request = creation("tab", false, Vec::new());
    assert_eq!(dynamo.create_table(0, &request).unwrap().status, Status::Creating);
    refused(
        put_at(&mut dynamo, 99, item([("p", s("a"))])),
        "ResourceNotFoundException",
        "Requested resource not found",
    );
    refused(dynamo.create_table(99, &request), "ResourceInUseException", "Table already exists: tab");
    refused(dynamo.delete_table(99, "tab"), "ResourceInUseException", "Table is being created: tab");
    assert_eq!(dynamo.describe_table(100, "tab").unwrap().status, Status::Active);
    put_at(&mut dynamo, 100, item([("p", s("a"))])).unwrap();
    let life = dynamo.table("tab").unwrap().life;
    assert_eq!(dynamo.delete_table(200, "tab").unwrap().status, Status::Deleting);
    refused(put_at(&mut dynamo, 210, item([("p", s("a"))])), "ResourceNotFoundException", "Requested");
    refused(dynamo.create_table(229, &request), "ResourceInUseException", "already exists");
    refused(dynamo.delete_table(229, "tab"), "ResourceInUseException", "being deleted");
    refused(dynamo.describe_table(230, "tab"), "ResourceNotFoundException", "Table: tab not found");
    assert!(dynamo.create_table(230, &request).unwrap().life > life);
    assert!(dynamo.table("tab").unwrap().is_empty());
}

#[test]
fn a_late_index_is_backfilled_read_and_deleted() {
    let mut dynamo = dynamo();
    dynamo.create_table(0, &creation("tab", false, Vec::new())).unwrap();
    for (key, owner) in [("a", Some("w")), ("b", None), ("c", Some("v"))] {
        let mut entry = item([("p", s(key))]);
        entry.extend(owner.map(|owner| ("owner".into(), s(owner))));
        put_at(&mut dynamo, 100, entry).unwrap();
    }
    let spec = index("late", false, IndexProjection::All);
    let create = change(vec![IndexChange::Create(spec.clone())]);
    assert_eq!(dynamo.update_table(200, &create).unwrap().status, Status::Updating);
    refused(dynamo.update_table(210, &create), "ResourceInUseException", "Table is being updated: tab");
    // The table stays in use meanwhile, and its writes reach the index.
    put_at(&mut dynamo, 250, item([("p", s("d")), ("owner", s("w"))])).unwrap();
    let table = dynamo.describe_table(300, "tab").unwrap();
    assert_eq!((table.status, table.indexes[0].status), (Status::Active, Status::Creating));
    invalid(owned(&mut dynamo, 349), "Cannot read from backfilling global secondary index: late");
    let other = index("other", false, IndexProjection::All);
    refused(
        dynamo.update_table(349, &change(vec![IndexChange::Create(other)])),
        "LimitExceededException",
        "Only 1 online index",
    );
    assert_eq!(owned(&mut dynamo, 350).unwrap(), 2);
    invalid(dynamo.update_table(350, &create), "already exists: late");
    dynamo.update_table(400, &change(vec![IndexChange::Delete("late".into())])).unwrap();
    invalid(owned(&mut dynamo, 400), "does not have the specified index");
    let table = dynamo.describe_table(500, "tab").unwrap();
    assert!(table.indexes.is_empty());
    assert_eq!(table.definitions.len(), 1);
    let again = change(vec![IndexChange::Delete("late".into())]);
    refused(dynamo.update_table(500, &again), "ResourceNotFoundException", "Index: late not found");
}

#[test]
fn a_long_silence_passes_through_every_state() {
    let mut dynamo = dynamo();
    dynamo.create_table(0, &creation("tab", false, Vec::new())).unwrap();
    let create = change(vec![IndexChange::Create(index("late", false, IndexProjection::All))]);
    dynamo.update_table(100, &create).unwrap();
    let table = dynamo.describe_table(1_000_000, "tab").unwrap();
    assert_eq!((table.status, table.indexes[0].status), (Status::Active, Status::Active));
    dynamo.delete_table(1_000_000, "tab").unwrap();
    assert!(dynamo.list_tables(2_000_000, None, None).unwrap().names.is_empty());
}

#[test]
fn protection_billing_and_class_change() {
    let mut dynamo = dynamo();
    let request = CreateTable { deletion_protection: true, ..creation("tab", false, Vec::new()) };
    dynamo.create_table(0, &request).unwrap();
    invalid(dynamo.delete_table(100, "tab"), "protected against deletion");
    let off = UpdateTable { deletion_protection: Some(false), ..change(Vec::new()) };
    assert_eq!(dynamo.update_table(100, &off).unwrap().status, Status::Active);
    let throughput = Throughput { read: 5, write: 5 };
    let provisioned = UpdateTable { billing: Some(Billing::Provisioned(throughput)), ..change(Vec::new()) };
    assert_eq!(dynamo.update_table(110, &provisioned).unwrap().status, Status::Updating);
    invalid(dynamo.update_table(300, &provisioned), "will not change");
    invalid(dynamo.update_table(300, &change(Vec::new())), "At least one of");
    dynamo.delete_table(300, "tab").unwrap();
}

#[test]
fn impossible_tables_are_refused() {
    let mut dynamo = dynamo();
    let mut refuse = |request: CreateTable, part: &str| {
        invalid(dynamo.create_table(0, &request), part);
    };
    refuse(creation("ab", false, Vec::new()), "at least 3 characters");
    refuse(creation("tab/le", false, Vec::new()), "regular expression pattern");
    let twice = vec![index("same", false, IndexProjection::All), index("same", true, IndexProjection::All)];
    refuse(creation("tab", false, twice), "Duplicate index name: same");
    let many = (0..21).map(|n| index(&format!("index{n}"), false, IndexProjection::All)).collect();
    refuse(creation("tab", false, many), "per-table limit of 20");
    let mut unused = creation("tab", false, Vec::new());
    unused.definitions.push(KeyAttribute { name: "x".into(), key_type: KeyType::S });
    refuse(unused, "Number of attributes in KeySchema does not exactly match");
    let billing = Billing::Provisioned(Throughput { read: 0, write: 1 });
    refuse(CreateTable { billing, ..creation("tab", false, Vec::new()) }, "greater than or equal to 1");
    let billing = Billing::Provisioned(Throughput { read: 1, write: 1 });
    let indexed = creation("tab", false, vec![index("some", false, IndexProjection::All)]);
    refuse(CreateTable { billing, ..indexed }, "must be specified for index: some");
    let config = DynamoConfig { max_changing_tables: 1, ..DynamoConfig::default() };
    let mut small = Dynamo::new(config);
    small.create_table(0, &creation("one", false, Vec::new())).unwrap();
    let result = small.create_table(0, &creation("two", false, Vec::new()));
    refused(result, "LimitExceededException", "simultaneously");
}

#[test]
fn backups_expiry_and_tags_are_kept() {
    let mut dynamo = dynamo();
    dynamo.create_table(0, &creation("tab", false, Vec::new())).unwrap();
    let early = dynamo.update_continuous_backups(50, "tab", true, None);
    refused(early, "ContinuousBackupsUnavailableException", "retry later");
    let backups = dynamo.update_continuous_backups(100, "tab", true, None).unwrap();
    assert_eq!(backups, Backups { since_ms: Some(100), period_days: 35 });
    assert_eq!(dynamo.update_continuous_backups(200, "tab", true, Some(7)).unwrap().since_ms, Some(100));
    assert_eq!(dynamo.update_continuous_backups(200, "tab", false, None).unwrap().since_ms, None);
    refused(dynamo.describe_continuous_backups(200, "none"), "TableNotFoundException", "none");

    dynamo.update_time_to_live(200, "tab", "expires", true).unwrap();
    assert_eq!(dynamo.describe_time_to_live(200, "tab").unwrap(), Some("expires"));
    invalid(dynamo.update_time_to_live(200, "tab", "expires", true), "already enabled");
    invalid(dynamo.update_time_to_live(200, "tab", "other", false), "different AttributeName");
    dynamo.update_time_to_live(200, "tab", "expires", false).unwrap();

    let arn = dynamo.arn("tab");
    dynamo.tag_resource(200, &arn, &[("team".to_owned(), "a".to_owned())].into()).unwrap();
    dynamo
        .tag_resource(
            200,
            &arn,
            &[("team".to_owned(), "b".to_owned()), ("x".to_owned(), String::new())].into(),
        )
        .unwrap();
    dynamo.untag_resource(200, &arn, &["x"]).unwrap();
    assert_eq!(*dynamo.list_tags(200, &arn).unwrap(), [("team".to_owned(), "b".to_owned())].into());
    refused(dynamo.list_tags(200, &dynamo.clone().arn("none")), "ResourceNotFoundException", "none");
    invalid(dynamo.list_tags(200, "nonsense"), "Invalid TableArn");
    assert_eq!(table_of_arn(&arn), Some("tab"));
}

#[test]
fn names_are_listed_in_pages() {
    let mut dynamo = dynamo();
    for name in ["ccc", "aaa", "bbb"] {
        dynamo.create_table(0, &creation(name, false, Vec::new())).unwrap();
    }
    let page = dynamo.list_tables(0, None, Some(2)).unwrap();
    assert_eq!((page.names, page.last.as_deref()), (vec!["aaa".to_owned(), "bbb".to_owned()], Some("bbb")));
    let page = dynamo.list_tables(0, Some("bbb"), Some(2)).unwrap();
    assert_eq!((page.names, page.last), (vec!["ccc".to_owned()], None));
    invalid(dynamo.list_tables(0, None, Some(101)), "less than or equal to 100");
}
