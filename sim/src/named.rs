//! Values with a name in files and on pages: each name is written once, beside its value.

/// An enum with the function of its names; then entries of a meaning, a value and its name.
macro_rules! named {
    ($(#[$about:meta])* pub enum $Enum:ident by $visible:vis $by:ident {$($(#[$entry:meta])* $Value:ident = $name:literal,)+}) => {
        $(#[$about])*
        pub enum $Enum {$(
            $(#[$entry])*
            #[serde(rename = $name)]
            $Value,
        )+}

        impl $Enum {
            /// The name in files and on pages.
            $visible const fn $by(self) -> &'static str {
                match self {
                    $(Self::$Value => $name,)+
                }
            }
        }
    };
}

pub(crate) use named;
