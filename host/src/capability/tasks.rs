//! `tasks`: the list of the session that the call belongs to.

use crate::runtime::GuestState;
use crate::runtime::contract::astrarium::host::tasks;
use crate::runtime::contract::astrarium::host::types::Error;
use crate::store::{Task, TaskStatus};

impl tasks::Host for GuestState {
    async fn get(&mut self) -> Result<Vec<tasks::Task>, Error> {
        self.may("tasks", self.env.effective.tasks)?;
        let tasks = self.services.store.tasks(&self.context.session)?;
        Ok(tasks.into_iter().map(Into::into).collect())
    }

    async fn replace(&mut self, tasks: Vec<tasks::Task>) -> Result<Vec<tasks::Task>, Error> {
        self.may("tasks", self.env.effective.tasks)?;
        if self.context.session.is_empty() {
            return Err(Error::NotFound(
                "no session is under way, so there is no task list; name one with --session".into(),
            ));
        }
        let tasks: Vec<Task> = tasks.into_iter().map(Into::into).collect();
        self.services.store.replace_tasks(&self.context.session, &tasks)?;
        self.get().await
    }
}

impl From<Task> for tasks::Task {
    fn from(task: Task) -> Self {
        let status = match task.status {
            TaskStatus::Pending => tasks::Status::Pending,
            TaskStatus::InProgress => tasks::Status::InProgress,
            TaskStatus::Completed => tasks::Status::Completed,
        };
        Self { id: task.id, content: task.content, status, depends_on: task.depends_on, assignee: task.assignee }
    }
}

impl From<tasks::Task> for Task {
    fn from(task: tasks::Task) -> Self {
        let status = match task.status {
            tasks::Status::Pending => TaskStatus::Pending,
            tasks::Status::InProgress => TaskStatus::InProgress,
            tasks::Status::Completed => TaskStatus::Completed,
        };
        Self { id: task.id, content: task.content, status, depends_on: task.depends_on, assignee: task.assignee }
    }
}
