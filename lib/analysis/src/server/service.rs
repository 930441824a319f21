//! Supplies as the stages of pipes see them.

use super::io::IoSupply;
use super::supply::{BudgetServer, Supply};
use diapason_abi::Nanos;
use diapason_pipe::bill::Service;

macro_rules! serves_pipes {
    ($server:ty, $($own:item)*) => {
        impl Service for $server {
            fn budget(&self) -> Nanos {
                BudgetServer::budget(self)
            }

            fn lost(&self) -> Nanos {
                BudgetServer::lost(self)
            }

            fn period(&self) -> Nanos {
                BudgetServer::period(self)
            }

            fn sync(&self, work: Nanos) -> Nanos {
                BudgetServer::sync(self, work)
            }

            fn any(&self, work: Nanos) -> Nanos {
                BudgetServer::any(self, work)
            }

            fn wakeups(&self) -> u64 {
                BudgetServer::wakeups(self)
            }

            $($own)*
        }
    };
}

serves_pipes!(
    Supply,
    fn behind(&self, work: Nanos, brought: Nanos) -> Option<Nanos> {
        self.joined(work, brought)
    }
);
serves_pipes!(IoSupply,);
