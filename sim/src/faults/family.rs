//! A family of faults as a table: the meaning, the name in files, the value without faults and the draw of each field
//! stand in one entry.

/// Entries: the meaning, the field (with its name in files, if that differs; such a field is a time in µs), its type, its
/// value without faults (by default 0), and its draw.
macro_rules! family {
    (
        $(#[$about:meta])*
        pub struct $Faults:ident by |$draws:ident, $setting:ident| $({$($before:tt)+})?;
        $($(#[$entry:meta])* $field:ident $(as $name:literal)?: $Type:ty $(= $plain:expr)?, $drawn:expr;)+
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $Faults {$(
            $(#[$entry])*
            $(#[serde(rename = $name, with = "micros")])?
            pub $field: $Type,
        )+}

        impl Default for $Faults {
            /// No fault.
            fn default() -> Self {
                Self { $($field: family!(@plain $($plain)?),)+ }
            }
        }

        impl $Faults {
            pub(crate) fn draw($draws: Draws, $setting: Setting) -> Self {
                $($($before)+)?
                Self { $($field: $drawn,)+ }
            }
        }
    };
    (@plain) => { 0 };
    (@plain $plain:expr) => { $plain };
}

pub(super) use family;
