//! The select loop: turns IO into inputs, carries out actions, decides nothing.
//!
//! ```text
//!   replication ─┐                             ┌─▶ producer, dead letters
//!   reports ─────┤                             ├─▶ status to Postgres
//!   timer ───────┼─▶ Input ─▶ core ─▶ Action ──┼─▶ ledger, relay_position
//!   connects ────┤                             ├─▶ state: log, gauge, /readyz
//!   shutdown ────┘                             └─▶ timer
//! ```
//!
//! Tasks (connecting, probing, saving) are owned by one `JoinSet`; a task that panics, or a
//! writer that ends by itself, ends the process.

use std::time::Duration;

use events::Class;
use futures::FutureExt as _;
use replication::SystemIdentity;
use runtime::{Health, Shutdown, exit::Exit, report::chain};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tracing::{debug, error, info, warn};

use crate::core::{Action, Actions, Input, Moment, Relay, State, StopReason};
use crate::error::ConnectError;
use crate::metrics::RelayMetrics;
use crate::sink::{Ledger, Outcome, Sink};
use crate::source::{Connected, Happened, Incoming, Source, Stream, unix_micros};

/// Inputs of one kind that are taken before the others get their turn.
const BURST: usize = 256;
/// How often the loop turns at least, for `/livez`.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How soon records that the client had no room for are tried again.
const BACKLOG: Duration = Duration::from_millis(5);
/// How long the last saves may take.
const LAST_SAVES: Duration = Duration::from_secs(5);

/// Everything the loop holds.
#[derive(Debug)]
pub struct EventLoop {
    /// The decisions.
    pub core: Relay,
    /// Opens streams.
    pub source: Source,
    /// Takes records.
    pub sink: Sink,
    /// Takes published ids.
    pub ledger: Ledger,
    /// Answers probes.
    pub kafka: kafka::Admin,
    /// What the admin port answers.
    pub health: Health,
    /// What is counted.
    pub metrics: RelayMetrics,
}

/// What a task answered.
#[derive(Debug)]
enum Done {
    Connected(Happened, Box<Result<Connected, ConnectError>>),
    Probed(Result<(), kafka::Error>),
    Saved(Result<(), database::Error>),
}

/// What changes while the loop runs.
struct Running<'a> {
    parts: &'a mut EventLoop,
    begun: Instant,
    stream: Option<Stream>,
    system: Option<SystemIdentity>,
    reading: bool,
    wake: Instant,
    tasks: JoinSet<Done>,
    saving: bool,
    /// A position that came meanwhile, and the server that it is of.
    unsaved: Option<(SystemIdentity, pgoutput::Lsn)>,
    told: Option<(State, String)>,
}

impl EventLoop {
    /// Runs until asked to stop or until nothing more can be done.
    ///
    /// # Errors
    /// [`Exit`] names why it ended by itself.
    pub async fn run(&mut self, shutdown: &Shutdown) -> Result<(), Exit> {
        let now = Instant::now();
        let mut running = Running {
            parts: self,
            begun: now,
            stream: None,
            system: None,
            reading: true,
            wake: now,
            tasks: JoinSet::new(),
            saving: false,
            unsaved: None,
            told: None,
        };
        running.turn_until_stopped(shutdown).await
    }
}

impl Running<'_> {
    async fn turn_until_stopped(&mut self, shutdown: &Shutdown) -> Result<(), Exit> {
        let mut heartbeat = interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asked_to_stop = false;
        loop {
            self.parts.health.turned();
            self.parts.metrics.show(&self.parts.core.gauges());
            if self.parts.ledger.is_dead() || self.parts.sink.is_dead() {
                return Err(Exit::bug("a writer to postgres ended by itself"));
            }
            // A loop that always finds work does not get to its timer: it comes behind outcomes
            // below, and the runtime's clock moves only when a thread has nothing to do.
            if Instant::now() >= self.wake && self.tick().await? {
                return Ok(());
            }
            let has_backlog = self.parts.sink.has_backlog();
            let stopped = tokio::select! {
                biased;
                () = shutdown.requested(), if !asked_to_stop => {
                    asked_to_stop = true;
                    self.input(Input::Shutdown).await?
                }
                // Before what is nearly always there: it also hands over what is due.
                number = self.parts.ledger.newer_epoch() => self.newer_epoch(number).await?,
                outcome = self.parts.sink.next() => self.outcomes(outcome).await?,
                () = sleep_until(self.wake) => self.tick().await?,
                Some(done) = self.tasks.join_next() => self.done(done).await?,
                () = tokio::time::sleep(BACKLOG), if has_backlog => {
                    self.parts.sink.push_backlog();
                    false
                }
                incoming = next(&mut self.stream), if self.reading => self.incoming(incoming).await?,
                _ = heartbeat.tick() => false,
            };
            if stopped {
                return Ok(());
            }
        }
    }

    /// Lets the core do what is due.
    async fn tick(&mut self) -> Result<bool, Exit> {
        // Until the core says otherwise there is nothing to wake up for.
        self.wake = Instant::now() + HEARTBEAT;
        self.input(Input::Tick).await
    }

    /// Takes what has come, and what else is there already.
    async fn incoming(&mut self, first: Incoming) -> Result<bool, Exit> {
        let mut next_one = Some(first);
        for _ in 0..BURST {
            match next_one.take() {
                Some(Incoming::Input(input)) => {
                    if self.input(input).await? {
                        return Ok(true);
                    }
                }
                Some(Incoming::Unknown) => {
                    self.parts.metrics.ignored(crate::core::Ignored::Unknown)
                }
                Some(Incoming::Nothing) => {}
                None => break,
            }
            if !self.reading {
                break;
            }
            next_one = next(&mut self.stream).now_or_never();
        }
        match next_one {
            // The burst is over and one more was taken already.
            Some(Incoming::Input(input)) => self.input(input).await,
            _ => Ok(false),
        }
    }

    async fn outcomes(&mut self, first: Outcome) -> Result<bool, Exit> {
        let mut actions = Actions::new();
        let mut next_one = Some(first);
        for _ in 0..BURST {
            let Some(outcome) = next_one.or_else(|| self.parts.sink.try_next()) else {
                break;
            };
            next_one = None;
            let input = match outcome {
                Outcome::Acked(tag) => Input::Acked(tag),
                Outcome::Failed(tag, class) => {
                    self.parts.metrics.failed(class);
                    Input::Failed(tag, class)
                }
            };
            let now = self.now();
            actions.append(&mut self.parts.core.step(input, now));
        }
        fail::fail_point!("relay::acked");
        if self.parts.sink.has_backlog() {
            self.parts.sink.push_backlog();
        }
        self.carry_out(actions).await
    }

    async fn done(&mut self, done: Result<Done, tokio::task::JoinError>) -> Result<bool, Exit> {
        match done.map_err(Exit::bug)? {
            Done::Connected(happened, outcome) => {
                self.parts.metrics.happened(&happened);
                if happened.gap_mended && self.input(Input::GapMended).await? {
                    return Ok(true);
                }
                self.connected(*outcome).await
            }
            Done::Probed(Ok(())) => self.input(Input::SinkUp).await,
            Done::Probed(Err(error)) => {
                warn!(error = %chain(&error), "kafka does not answer");
                self.input(Input::SinkDown).await
            }
            Done::Saved(outcome) => {
                self.saved(outcome);
                Ok(false)
            }
        }
    }

    async fn connected(&mut self, outcome: Result<Connected, ConnectError>) -> Result<bool, Exit> {
        let connected = match outcome {
            Ok(connected) => connected,
            Err(error) => return self.input(Input::Refused(error.failure())).await,
        };
        self.stream = Some(connected.stream);
        self.system = Some(connected.system);
        self.reading = true;
        self.input(Input::Connected {
            confirmed: connected.confirmed,
            status_interval_us: connected.status_interval_us,
            epoch: connected.epoch,
        })
        .await
    }

    /// The ledger refused entries, since an epoch has begun without a change of the server.
    async fn newer_epoch(&mut self, number: i64) -> Result<bool, Exit> {
        let epoch = self.parts.source.naming(number);
        self.input(Input::Epoch(epoch)).await
    }

    async fn input(&mut self, input: Input) -> Result<bool, Exit> {
        let now = self.now();
        let actions = self.parts.core.step(input, now);
        self.carry_out(actions).await
    }

    /// Carries the actions out in their order. Answers whether the process has to end.
    async fn carry_out(&mut self, actions: Actions) -> Result<bool, Exit> {
        for action in actions {
            match action {
                Action::Connect => self.connect(),
                Action::ProbeSink => self.probe(),
                Action::Produce(tag, record) => {
                    self.parts.sink.produce(tag, record);
                    fail::fail_point!("relay::produced");
                    self.parts.ledger.hand_over_due();
                }
                Action::DeadLetter(tag, letter) => {
                    self.parts.metrics.dead_letter(letter.reason);
                    self.parts.sink.dead_letter(tag, letter);
                }
                Action::Confirm(status) => {
                    if let Some(stream) = &self.stream {
                        stream.confirm(status);
                    }
                }
                Action::SavePosition(confirmed) => self.save(confirmed),
                Action::PauseRead => self.reading = false,
                Action::ResumeRead => self.reading = true,
                Action::Published {
                    event,
                    commit_time,
                    epoch,
                } => {
                    let micros = unix_micros().saturating_sub(commit_time);
                    self.parts.metrics.published(
                        Duration::from_micros(micros.max(0).unsigned_abs()).as_secs_f64(),
                    );
                    self.parts.ledger.publish(event, epoch);
                }
                Action::Ignored(kind) => self.parts.metrics.ignored(kind),
                Action::SleepUntil(moment) => {
                    self.wake = self.begun + Duration::from_micros(moment.0)
                }
                Action::Disconnect => self.stream = None,
                Action::RebuildSink => {
                    self.parts
                        .sink
                        .rebuild()
                        .await
                        .map_err(|error| match error.class() {
                            Class::Config => Exit::config(error),
                            _ => Exit::dependency(error),
                        })?
                }
                Action::Enter(state, text) => self.enter(state, text),
                Action::Stop(reason) => return self.stop(reason).await,
            }
        }
        Ok(false)
    }

    fn connect(&mut self) {
        let source = self.parts.source.clone();
        let attempt = self.parts.core.attempt();
        self.tasks.spawn(async move {
            let mut happened = Happened::default();
            let outcome = source.connect(attempt, &mut happened).await;
            Done::Connected(happened, Box::new(outcome))
        });
    }

    fn probe(&mut self) {
        let kafka = self.parts.kafka.clone();
        self.tasks
            .spawn(async move { Done::Probed(kafka.ping().await) });
    }

    fn save(&mut self, confirmed: pgoutput::Lsn) {
        // One at a time; only the last of those that wait is of use.
        self.unsaved = self.system.clone().map(|system| (system, confirmed));
        if !self.saving {
            self.save_next();
        }
    }

    fn save_next(&mut self) {
        if let Some((system, confirmed)) = self.unsaved.take() {
            self.saving = true;
            let positions = self.parts.source.positions.clone();
            self.tasks
                .spawn(async move { Done::Saved(positions.save(&system, confirmed).await) });
        }
    }

    fn saved(&mut self, outcome: Result<(), database::Error>) {
        self.saving = false;
        if let Err(error) = outcome {
            warn!(error = %chain(&error), "position not noted");
        }
        self.save_next();
    }

    fn enter(&mut self, state: State, text: String) {
        if self.told.is_some() && state != State::Streaming {
            self.parts.metrics.reconnect(state);
        }
        if self.told.as_ref().is_none_or(|(told, _)| *told != state) {
            self.parts.metrics.gap(state);
        }
        let detail = format!("{}: {text}", state.as_str());
        self.parts
            .health
            .set("replication", state.is_ready(), detail);
        // After what else tells of it: who has read the state finds the rest told too.
        self.parts.metrics.enter(state);
        if state == State::Streaming || state == State::Standby {
            self.parts.health.started();
        }
        let state_name = state.as_str();
        if self
            .told
            .as_ref()
            .is_some_and(|told| *told == (state, text.clone()))
        {
            debug!(state = state_name, detail = text, "still so");
            return;
        }
        if state.needs_repair() {
            error!(
                state = state_name,
                detail = text,
                "nothing is relayed until this is mended"
            );
        } else if state.is_ready() {
            info!(state = state_name, detail = text, "state");
        } else {
            warn!(state = state_name, detail = text, "state");
        }
        self.told = Some((state, text));
    }

    async fn stop(&mut self, reason: StopReason) -> Result<bool, Exit> {
        match reason {
            StopReason::Config(text) => return Err(Exit::config(text)),
            StopReason::Dependency(text) => return Err(Exit::dependency(text)),
            StopReason::Asked => {}
        }
        self.parts.health.set("replication", false, "stopping");
        if let Some(stream) = self.stream.take() {
            stream.close().await;
        }
        let saves = async {
            while self.saving {
                match self.tasks.join_next().await {
                    Some(Ok(Done::Saved(outcome))) => self.saved(outcome),
                    Some(_) => {}
                    None => break,
                }
            }
        };
        if tokio::time::timeout(LAST_SAVES, saves).await.is_err() {
            warn!("position not noted in time");
        }
        self.tasks.abort_all();
        Ok(true)
    }

    fn now(&self) -> Moment {
        Moment(u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

async fn next(stream: &mut Option<Stream>) -> Incoming {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}
