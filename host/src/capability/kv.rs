//! `kv`: a plugin's own keys, within its quota.

use crate::runtime::GuestState;
use crate::runtime::contract::astrarium::host::kv;
use crate::runtime::contract::astrarium::host::types::Error;
use crate::store::{KvScope, Quota};

impl GuestState {
    fn kv_scope(&self, scope: kv::Scope) -> Result<KvScope, Error> {
        self.may("kv", self.env.effective.kv)?;
        match scope {
            kv::Scope::Plugin => Ok(KvScope::Plugin),
            kv::Scope::Session if self.context.session.is_empty() => {
                Err(Error::NotFound("no session is under way; use the scope `plugin`".into()))
            }
            kv::Scope::Session => Ok(KvScope::Session(self.context.session.clone())),
        }
    }

    fn kv_quota(&self) -> Quota {
        Quota(self.limits.kv_bytes)
    }
}

impl kv::Host for GuestState {
    async fn get(&mut self, scope: kv::Scope, key: String) -> Result<Option<Vec<u8>>, Error> {
        let scope = self.kv_scope(scope)?;
        Ok(self.services.store.kv_get(&self.env.plugin, &scope, &key)?)
    }

    async fn set(&mut self, scope: kv::Scope, key: String, value: Vec<u8>) -> Result<(), Error> {
        let scope = self.kv_scope(scope)?;
        Ok(self.services.store.kv_set(&self.env.plugin, &scope, &key, &value, self.kv_quota())?)
    }

    async fn delete(&mut self, scope: kv::Scope, key: String) -> Result<bool, Error> {
        let scope = self.kv_scope(scope)?;
        Ok(self.services.store.kv_delete(&self.env.plugin, &scope, &key)?)
    }

    async fn keys(&mut self, scope: kv::Scope, prefix: String) -> Result<Vec<String>, Error> {
        let scope = self.kv_scope(scope)?;
        Ok(self.services.store.kv_keys(&self.env.plugin, &scope, &prefix)?)
    }

    async fn increment(&mut self, scope: kv::Scope, key: String, by: i64) -> Result<i64, Error> {
        let scope = self.kv_scope(scope)?;
        Ok(self.services.store.kv_increment(&self.env.plugin, &scope, &key, by, self.kv_quota())?)
    }
}
