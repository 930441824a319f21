//! Supplies as the stages of pipes see them.

use super::io::IoSupply;
use super::supply::{Server, Supply};
use diapason_abi::Nanos;
use diapason_pipe::bill::Service;

macro_rules! serves_pipes {
    ($server:ty) => {
        impl Service for $server {
            fn budget(&self) -> Nanos {
                Server::budget(self)
            }

            fn lost(&self) -> Nanos {
                Server::lost(self)
            }

            fn period(&self) -> Nanos {
                Server::period(self)
            }

            fn sync(&self, work: Nanos) -> Nanos {
                Server::sync(self, work)
            }

            fn any(&self, work: Nanos) -> Nanos {
                Server::any(self, work)
            }

            fn wakeups(&self) -> u64 {
                Server::wakeups(self)
            }
        }
    };
}

serves_pipes!(Supply);
serves_pipes!(IoSupply);
