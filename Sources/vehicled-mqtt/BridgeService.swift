// The bridge as a whole: creates its parts and connects them. Values pass from the daemon through ValuePublisher to the send queue, and
// commands from the broker through CommandReader to the daemon.

import Glibc
import Logging
import Protocols
import ServiceRuntime
import Varlink

final class BridgeService: EventSource {
  /// How often the daemon reports changes, in ms. No home needs more.
  private static let watchInterval = 1000
  /// The longest delay after the start of Home Assistant until everything is sent again, in seconds.
  private static let birthDelay = 0.0...10.0

  private let loop: EventLoop
  private let configuration: MQTTConfiguration
  private let daemon: String
  private let topics: Topics
  private let logger = Logger(label: "vehicled-mqtt")
  private let commands: CommandReader
  private var publisher: ValuePublisher
  private var client: BrokerClient?
  private var sender: Sender?
  private var fleet: FleetPublisher?
  private var watch: DaemonWatch?
  /// The last configuration that was announced for each device.
  private var announced: [String: String] = [:]
  /// Whether the daemon has reported the devices since the start.
  private var hasValues = false
  private var daemonFailure: String? = "not connected yet"
  private var brokerFailure: String? = "not connected yet"

  init(_ configuration: MQTTConfiguration, daemon: String, directory: String, host: String, loop: EventLoop) throws {
    (self.configuration, self.daemon, self.loop) = (configuration, daemon, loop)
    topics = Topics(prefix: configuration.prefix, host: configuration.host ?? host)
    commands = CommandReader(topics, allowed: configuration.control)
    publisher = ValuePublisher(topics, timing: configuration.timing, names: configuration.names) { [selection = configuration.selection] in
      selection.includes($0, kind: $1, $2)
    }
    super.init()
    let store = try QueueStore(directory: directory, maxAge: configuration.queueAge, maxSize: configuration.queueSize)
    var options = configuration.broker
    options.clientID = configuration.clientID ?? "vehicled-\(topics.host)"
    options.will = .state(topics.status, "offline")
    options.filters = topics.commandFilters + (configuration.discoveryPrefix.map { ["\($0)/status"] } ?? [])
    let client = BrokerClient(options, loop: loop) { [unowned self] in handle($0) }
    self.client = client
    sender = try Sender(store, loop: loop) { (message) throws(BrokerFailure) in try client.publish(message) }
    sender?.changed = { [weak self] in self?.updateStatus() }
    fleet = configuration.fleet.map { configuration in
      FleetPublisher(configuration, host: topics.host, loop: loop) { [weak self] in self?.sender?.add($0) }
    }
    loop.add(self)
  }

  /// Publishes until the loop ends.
  func run() throws {
    watch = DaemonWatch(socket: daemon, minimumInterval: Self.watchInterval, loop: loop) { [unowned self] in handle($0, at: $1) }
    logger.notice("publishing the values of \(daemon) to \(configuration.broker.description)")
    try loop.runAsService()
    logger.notice("stopping")
    watch?.close()
    fleet?.flush()
    if sender?.isConnected == true { _ = try? client?.publish(.state(topics.status, "offline")) }
    client?.close()
    sender?.close()
  }

  override func timerFired(at now: Instant) {
    sender?.add(publisher.publications(at: now))
    wake = publisher.due.map { max($0, now + 100 * .millisecond) }
  }

  // MARK: The daemon

  private func handle(_ event: DaemonWatch.Event, at now: Instant) {
    switch event {
    case .result(let result):
      sender?.add(publisher.apply(result, at: now))
      if daemonFailure != nil { daemonConnected() }
      fleet?.apply(result)
      for event in result.events ?? [] where event.name == Contract.Event.removed { withdraw(event.device) }
      for schema in result.schemas ?? [] { announce(schema.device) }
      let undeclared = (result.snapshot ?? []).map(\.name).filter { publisher.schema(of: $0) == nil }
      if !undeclared.isEmpty { describe() } else { for device in result.snapshot ?? [] { announce(device.name) } }
    case .gap(let missing): logger.warning("vehicled skipped \(missing) replies: this service reads too slowly")
    case .disconnected(let failure, _):
      if daemonFailure == nil { logger.notice("no values: \(failure.message)") }
      daemonFailure = failure.message
      fleet?.interrupt()
      sender?.add(publisher.daemonLost("vehicled is not running", at: now))
      updateStatus()
    }
    wake = publisher.due.map { max($0, now) }
  }

  private func daemonConnected() {
    daemonFailure = nil
    logger.notice("connected to \(daemon)")
    sender?.add([.state(topics.status, "online")])
    hasValues = true
    updateStatus()
  }

  /// Asks for the declarations of all devices, which a snapshot does not contain.
  private func describe() {
    DaemonCall(socket: daemon, Contract.Describe.self, .init(), loop: loop) { [weak self] result in
      guard let self else { return }
      switch result {
      case .success(let found):
        for schema in found.schemas {
          publisher.declare(schema)
          announce(schema.device)
        }
      case .failure(let failure): logger.error("cannot read the declarations of the devices: \(failure.message)")
      }
    }
  }

  // MARK: Home Assistant

  private func announce(_ device: String) {
    guard let prefix = configuration.discoveryPrefix, let schema = publisher.schema(of: device) else { return }
    // A device with only private values is not announced.
    guard !schema.properties.isEmpty else { return withdraw(device) }
    let discovery = DiscoveryPayload(topics: topics, prefix: prefix, timing: configuration.timing, allows: commands.allows)
    let payload = discovery.payload(schema)
    guard announced[device] != payload else { return }
    announced[device] = payload
    sender?.add([.state(discovery.topic(of: device), payload)])
  }

  private func withdraw(_ device: String) {
    guard let prefix = configuration.discoveryPrefix, announced.removeValue(forKey: device) != nil else { return }
    let discovery = DiscoveryPayload(topics: topics, prefix: prefix, timing: configuration.timing, allows: commands.allows)
    sender?.add([.state(discovery.topic(of: device), "")])
  }

  // MARK: The broker

  private func handle(_ event: BrokerClient.Event) {
    switch event {
    case .connected(let limits):
      brokerFailure = nil
      logger.notice("connected to \(configuration.broker.description) by MQTT \(limits.isCurrent ? "5" : "3.1.1")")
      sender?.connected(limits)
      publishAll()
      updateStatus()
    case .disconnected(let failure, _):
      if brokerFailure != failure.description { logger.warning("\(failure)") }
      brokerFailure = failure.description
      sender?.disconnected()
      updateStatus()
    case .acknowledged(let id, let failure): sender?.acknowledged(id, failure: failure)
    case .received(let message): received(message)
    case .filtersRejected(let count):
      logger.error(
        "the broker rejects \(count) subscriptions: commands do not arrive; allow the bridge's user to subscribe below \(topics.prefix)/")
    }
  }

  /// Publishes everything: the broker may have lost retained messages, or values have expired meanwhile.
  private func publishAll() {
    let states = publisher.restart()
    announced = [:]
    for device in publisher.deviceNames { announce(device) }
    sender?.add(states + publisher.publications(at: SystemClock.monotonic))
    // Until the daemon has reported, the broker has only values of an earlier run.
    sender?.add([.state(topics.status, hasValues ? "online" : "offline")])
  }

  private func received(_ message: IncomingMessage) {
    if let prefix = configuration.discoveryPrefix, message.topic == "\(prefix)/status" {
      if message.payload == Array("online".utf8), !message.isRetained { homeAssistantStarted() }
      return
    }
    do throws(CommandRejection) {
      guard let command = try commands.command(message, schema: { publisher.schema(of: $0) }) else { return }
      run(command, for: message)
    } catch {
      logger.warning("command rejected: \(error.message)")
      respond(to: message, error: error.message)
    }
  }

  /// Home Assistant reads retained messages, but loses expired ones; after a random delay everything is sent again.
  private func homeAssistantStarted() {
    let delay = Double.random(in: Self.birthDelay)
    _ = OneShot(after: Int64(delay * 1e9), loop: loop) { [weak self] in
      if self?.sender?.isConnected == true { self?.publishAll() }
    }
  }

  private func run(_ command: DaemonCommand, for message: IncomingMessage) {
    switch command {
    case .set(let device, let property, let value):
      DaemonCall(socket: daemon, Contract.Set.self, .init(device: device, property: property, value: value), loop: loop) { [weak self] in
        self?.finished(message, "\(device).\(property)", $0.map { _ in })
      }
    case .run(let device, let action, let arguments):
      DaemonCall(
        socket: daemon, Contract.Call.self, .init(device: device, action: action, arguments: arguments.isEmpty ? nil : arguments),
        loop: loop
      ) { [weak self] in
        self?.finished(message, "\(device).\(action)", $0.map { _ in })
      }
    }
  }

  private func finished(_ message: IncomingMessage, _ reference: String, _ result: Result<Void, DaemonFailure>) {
    switch result {
    case .success:
      logger.info("\(reference): command carried out")
      respond(to: message, error: nil)
    case .failure(let failure):
      logger.warning("\(reference): command failed: \(failure.message)")
      respond(to: message, error: failure.message)
    }
  }

  private func respond(to message: IncomingMessage, error: String?) {
    guard let topic = message.responseTopic, !topic.contains(where: { "#+".contains($0) }), !topic.isEmpty, sender?.isConnected == true
    else {
      return
    }
    let text = JSON.members(["ok": .bool(error == nil), "error": error.map { .string($0) }]).text
    // A response is for a client that waits: it is not queued.
    _ = try? client?.publish(OutgoingMessage(topic, text.utf8, expiry: 60, correlation: message.correlation))
  }

  private func updateStatus() {
    let problem = brokerFailure ?? sender?.rejection ?? sender?.failure.map { "the send queue cannot be stored: \($0)" } ?? daemonFailure
    Notify.status(problem ?? "connected to \(configuration.broker.description)")
  }
}

/// Runs a closure once.
private final class OneShot: EventSource {
  private let body: () -> Void

  init(after delay: Nanoseconds, loop: EventLoop, _ body: @escaping () -> Void) {
    self.body = body
    super.init()
    wake = SystemClock.monotonic + delay
    loop.add(self)
  }

  override func timerFired(at now: Instant) {
    isClosed = true
    body()
  }
}
