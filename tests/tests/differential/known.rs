//! Where dynoxide differs from DynamoDB, and ours does not.

/// The known differences: part of the names of the cases, and DynamoDB's behaviour.
pub(super) const KNOWN: &[(&str, &str)] = &[
    ("attribute_type(#text, :type_odd)", "refuses a type that does not exist; dynoxide finds no match"),
    ("attribute_type(#text, #number)", "takes a value as the type, never a path"),
    ("\"yes < :true\"", "refuses to order what has no order"),
    ("\"texts < :set\"", "refuses to order what has no order"),
    ("\"#number = #number\"", "refuses to compare an attribute with itself"),
    (
        "filter \"#number BETWEEN :nine AND :one\"",
        "refuses bounds in the wrong order, in a filter as in a condition",
    ),
    ("ATTRIBUTE_EXISTS(leaseKey)", "knows functions in lower case only"),
    ("\"SET #row[0] = :hello\" on a full item, ", "returns the elements that were updated, not their list"),
    (
        "\"SET #row[7] = :hello\" on a full item, ",
        "returns what is at the path that was updated, not its list",
    ),
    (
        "\"REMOVE #row[0], #row[2]\" on a full item, ",
        "returns the elements that were removed, not their list",
    ),
    ("\"REMOVE #row[9]\" on a full item, ", "returns the elements that were removed, not their list"),
    ("after \"REMOVE #text, #number\" on no item", "makes no item to remove something from"),
    ("after \"REMOVE nowhere\" on no item", "makes no item to remove something from"),
    ("after \"DELETE texts :other_set\" on no item", "makes no item to remove something from"),
    ("after \"DELETE texts :set\" on no item", "makes no item to remove something from"),
    ("after \"DELETE numbers :nset\" on no item", "makes no item to remove something from"),
    ("after \"DELETE fresh :set\" on no item", "makes no item to remove something from"),
    ("after \"DELETE #text :set\" on no item", "makes no item to remove something from"),
    ("\"REMOVE #row[0], #row[2]\" on no item, ", "ignores paths into an item that does not exist"),
    ("\"REMOVE #row[9]\" on no item, ", "ignores paths into an item that does not exist"),
    ("\"REMOVE #map.inside.leaf\" on no item, ", "ignores paths into an item that does not exist"),
    ("\"REMOVE #map.nowhere.leaf\" on no item, ", "ignores paths into an item that does not exist"),
    ("\"ADD numbers :nset\"", "takes numbers of a set as equal by value; dynoxide compares their text"),
    (
        "\"ADD texts :nset\" on no item",
        "takes numbers of a set as equal by value; dynoxide compares their text",
    ),
    ("\"DELETE numbers :nset\"", "takes numbers of a set as equal by value; dynoxide compares their text"),
];
