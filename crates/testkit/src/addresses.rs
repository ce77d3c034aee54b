//! Names of Postgres and the broker that the services of one test know, and that move.

use sandbox::Hosts;

use crate::{Deployment, Proxy, free_address, names::unique, servers::instance};

const POSTGRES: &str = "postgres.tideline.test";
/// The broker advertises this name on a listener of its own.
const BROKER: &str = sandbox::BROKER_NAME;

/// Two names with a proxy behind each. At first both are 127.0.0.2, and with each move the next
/// address; the old one refuses whoever comes. The deployment keeps the direct addresses.
#[derive(Debug)]
pub struct Addresses {
    hosts: Hosts,
    postgres: Place,
    broker: Place,
    last_byte: u8,
    env: Vec<(String, String)>,
}

#[derive(Debug)]
struct Place {
    port: u16,
    upstream: String,
    proxy: Proxy,
}

impl Addresses {
    /// Names for the servers of a deployment. One test at a time has those of a test instance; the
    /// next one waits.
    ///
    /// # Panics
    /// When libnss-wrapper is not installed, or the broker has no listener with its name, because
    /// it was started by an older version of this sandbox.
    pub async fn of(deployment: &Deployment) -> Self {
        const FIRST: u8 = 2;
        let file = instance().dir().join("hosts").join(unique("hosts"));
        let hosts = Hosts::new(&file).unwrap_or_else(|error| panic!("{error}"));
        let url = deployment.database_url();
        let (user, rest) = url.split_once('@').expect("the URL names the user");
        let (server, database) = rest.split_once('/').expect("the URL ends in /database");
        let door = deployment.servers().instance().broker_behind_name();
        if let Err(error) = tokio::net::TcpStream::connect(&door.broker).await {
            panic!(
                "no listener of the broker at {}: {error}; stop this test instance, so that it \
                 starts with one",
                door.broker
            );
        }
        let postgres = Place::at(FIRST, port_of(&free_address()), server).await;
        let broker = Place::at(FIRST, door.port, &door.broker).await;
        let mut env = hosts.env();
        env.push((
            "TIDELINE_POSTGRES__URL".to_owned(),
            format!("{user}@{POSTGRES}:{}/{database}", postgres.port),
        ));
        env.push((
            "TIDELINE_KAFKA__BROKERS".to_owned(),
            format!("{BROKER}:{}", broker.port),
        ));
        let addresses = Self {
            hosts,
            postgres,
            broker,
            last_byte: FIRST,
            env,
        };
        addresses.tell();
        addresses
    }

    /// The settings of a service that knows the servers by these names.
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// Moves both to the next address. Connections end, and the old address refuses new ones.
    pub async fn move_on(&mut self) {
        self.last_byte += 1;
        for place in [&mut self.postgres, &mut self.broker] {
            *place = Place::at(self.last_byte, place.port, &place.upstream).await;
        }
        self.tell();
    }

    /// Connections that came to where Postgres and the broker are now.
    pub fn accepted(&self) -> [u64; 2] {
        [&self.postgres, &self.broker].map(|place| place.proxy.counters().accepted)
    }

    fn tell(&self) {
        let address = format!("127.0.0.{}", self.last_byte);
        let names = [POSTGRES, BROKER].map(|name| (name, address.as_str()));
        self.hosts
            .set(&names)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

impl Place {
    async fn at(last_byte: u8, port: u16, upstream: &str) -> Self {
        Self {
            port,
            upstream: upstream.to_owned(),
            proxy: Proxy::at(&format!("127.0.0.{last_byte}:{port}"), upstream).await,
        }
    }
}

fn port_of(address: &str) -> u16 {
    let port = address
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    port.expect("an address ends in a port")
}
