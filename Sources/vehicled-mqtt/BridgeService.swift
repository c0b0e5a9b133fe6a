// The bridge as a whole: creates its parts and connects them. Values pass from the daemon through ValuePublisher to the send queue, and
// commands from the broker through CommandRunner to the daemon.

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

  /// The longest time to wait for acknowledgements at the end.
  private static let stopTimeout: Nanoseconds = 3 * .second
  /// The time after which the declarations are read again.
  private static let describeDelay: Nanoseconds = 5 * .second

  private let loop: EventLoop
  private let configuration: MQTTConfiguration
  private let daemon: String
  private let topics: Topics
  private let logger = Logger(label: "vehicled-mqtt")
  private var publisher: ValuePublisher
  private var announcements: Announcements?
  private var commands: CommandRunner?
  private var controlCheck: ControlCheck
  private var client: BrokerClient?
  private var sender: Sender?
  private var fleet: FleetPublisher?
  private var watch: DaemonWatch?
  private var clearing = TopicClearing()
  /// Whether the daemon has reported the devices since the start.
  private var hasValues = false
  /// Whether it has declared them since the connection.
  private var isDescribed = false
  /// Whether everything is to be sent again after a start of Home Assistant.
  private var isBirthPending = false
  private var daemonFailure: String? = "not connected yet"
  private var brokerFailure: String? = "not connected yet"

  init(_ configuration: MQTTConfiguration, daemon: String, directory: String, host: String, loop: EventLoop) throws {
    (self.configuration, self.daemon, self.loop) = (configuration, daemon, loop)
    topics = Topics(prefix: configuration.prefix, host: configuration.host ?? host)
    let reader = CommandReader(topics, allowed: configuration.control)
    controlCheck = ControlCheck(configuration.control)
    announcements = configuration.discoveryPrefix.map { [topics] prefix in
      Announcements(
        DiscoveryPayload(
          topics: topics, prefix: prefix, timing: configuration.timing, allows: reader.allows))
    }
    let store = try QueueStore(directory: directory, maxAge: configuration.queueAge, maxSize: configuration.queueSize)
    let stored = try store.contents()
    publisher = ValuePublisher(
      topics, timing: configuration.timing, names: configuration.names, retained: stored.retained
    ) { [selection = configuration.selection] in
      selection.includes($0, kind: $1, $2)
    }
    super.init()
    var options = configuration.broker
    options.clientID = configuration.clientID ?? "vehicled-\(topics.host)"
    options.will = .state(topics.status, "offline")
    options.filters = topics.commandFilters + (configuration.discoveryPrefix.map { ["\($0)/status"] } ?? [])
    options.filters += announcements.map { [$0.filter] } ?? []
    let client = BrokerClient(options, loop: loop) { [unowned self] in handle($0) }
    self.client = client
    sender = Sender(store, stored, loop: loop) { (message) throws(BrokerFailure) in try client.publish(message) }
    sender?.changed = { [weak self] in self?.updateStatus() }
    commands = CommandRunner(
      reader, daemon: daemon, loop: loop, schema: { [unowned self] in publisher.declaration(of: $0) },
      // A response is for a client that waits: it is not queued.
      publish: { [unowned self] in if sender?.isConnected == true { _ = try? client.publish($0) } })
    fleet = configuration.fleet.map { configuration in
      FleetPublisher(configuration, host: topics.host, watchInterval: Self.watchInterval, loop: loop) { [weak self] in
        self?.sender?.add($0)
      }
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
    fleet?.interrupt()
    _ = publisher.forgetRemoved(at: .max)
    removeOthers()
    add(clearing.messages(at: .max))
    let lost = publisher.daemonLost("vehicled-mqtt is not running", at: SystemClock.monotonic)
    sender?.stop([.state(topics.status, "offline")] + lost)
    let end = SystemClock.monotonic + Self.stopTimeout
    while sender?.isConnected == true, sender?.isIdle == false, SystemClock.monotonic < end { client?.wait(milliseconds: 100) }
    client?.close(withWill: sender?.isIdle == false)
    sender?.close()
  }

  override func timerFired(at now: Instant) {
    if publisher.forgetRemoved(at: now) { removeOthers() }
    add(publisher.publications(at: now) + clearing.messages(at: now))
  }

  // MARK: The daemon

  private func handle(_ event: DaemonWatch.Event, at now: Instant) {
    switch event {
    case .result(let result):
      let schemas = result.schemas ?? []
      for schema in schemas { publisher.declare(schema) }
      add(publisher.apply(result, at: now))
      for schema in schemas { announce(schema.device) }
      if !schemas.isEmpty { removeOthers() }
      if !schemas.isEmpty, isDescribed { checkControl(publisher.deviceNames.compactMap { publisher.declaration(of: $0) }) }
      if result.snapshot != nil, result.schemas == nil { describe() }
      if daemonFailure != nil { daemonConnected() }
      fleet?.apply(result)
    case .gap(let missing): logger.warning("vehicled skipped \(missing) replies: this service reads too slowly")
    case .disconnected(let failure, _):
      if daemonFailure == nil { logger.notice("no values: \(failure.message)") }
      daemonFailure = failure.message
      fleet?.interrupt()
      isDescribed = false
      add(publisher.daemonLost("vehicled is not running", at: now))
      updateStatus()
    }
  }

  private func daemonConnected() {
    daemonFailure = nil
    logger.notice("connected to \(daemon)")
    sender?.add([.state(topics.status, "online")])
    hasValues = true
    updateStatus()
  }

  /// Asks for the declarations of all devices, which the first snapshot does not contain.
  private func describe() {
    DaemonCall(socket: daemon, Contract.Describe.self, .init(), loop: loop) { [weak self] result in
      guard let self else { return }
      switch result {
      case .success(let found):
        for schema in found.schemas {
          publisher.declare(schema)
          announce(schema.device)
        }
        fleet?.describe(found.schemas)
        publisher.remove(except: Set(found.schemas.map(\.device)), at: SystemClock.monotonic)
        isDescribed = true
        checkControl(found.schemas)
        removeOthers()
        schedule()
        commands?.devicesDeclared()
        sender?.release(publisher.topicsInUse(onlyDurable: true))
      case .failure(let failure):
        guard daemonFailure == nil else { return }
        logger.error("cannot read the declarations of the devices: \(failure.message)")
        OneShot(after: Self.describeDelay, loop: loop) { [weak self] in if self?.daemonFailure == nil { self?.describe() } }
      }
    }
  }

  /// Logs which entries of `control` select nothing. A client of the broker would see only that its commands are rejected.
  private func checkControl(_ schemas: [Contract.Schema]) {
    for problem in controlCheck.newProblems(in: schemas) { logger.warning("\(problem)") }
  }

  /// Queues messages.
  private func add(_ messages: [OutgoingMessage]) {
    clearing.published(messages)
    sender?.setRetained(publisher.retained)
    sender?.add(messages)
    schedule()
  }

  private func schedule() {
    let due = [publisher.due, clearing.due].compactMap(\.self).min()
    wake = due.map { max($0, SystemClock.monotonic + 100 * .millisecond) }
  }

  // MARK: Home Assistant

  private func announce(_ device: String) {
    guard let schema = publisher.schema(of: device) else { return }
    // A device with only private values is not announced.
    add((schema.properties.isEmpty ? announcements?.withdraw(device) : announcements?.announce(schema)) ?? [])
  }

  /// Removes what no longer exists: the configurations at once, and the topics some seconds later.
  private func removeOthers() {
    guard isDescribed, let sender else { return }
    add(announcements?.removeAll(except: publisher.deviceNames) ?? [])
    let isInUse = publisher.topicsInUse()
    let others = sender.retainedTopics.filter { $0 != topics.status && !isInUse($0) && announcements?.isInUse($0) != true }
    let configurations = others.filter { !$0.hasPrefix("\(topics.prefix)/") }
    add(configurations.sorted().map { .state($0, "") })
    clearing.clear(others.subtracting(configurations).sorted(), at: SystemClock.monotonic)
    schedule()
  }

  // MARK: The broker

  private func handle(_ event: BrokerClient.Event) {
    switch event {
    case .connected(let limits):
      brokerFailure = nil
      logger.notice("connected to \(configuration.broker.description) by MQTT \(limits.isCurrent ? "5" : "3.1.1")")
      fleet?.connected(limits)
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
    case .filterRejected(let filter):
      logger.error("the broker rejects the subscription to \(filter); allow it for the bridge's user")
    }
  }

  /// Publishes everything: the broker may have lost retained messages, or values have expired meanwhile.
  private func publishAll() {
    let states = publisher.restart()
    announcements?.restart()
    for device in publisher.deviceNames { announce(device) }
    add(states + publisher.publications(at: SystemClock.monotonic))
    // Until the daemon has reported, the broker has only values of an earlier run.
    sender?.add([.state(topics.status, hasValues ? "online" : "offline")])
  }

  private func received(_ message: IncomingMessage) {
    if let prefix = configuration.discoveryPrefix, message.topic == "\(prefix)/status" {
      if message.payload == Array("online".utf8), !message.isRetained { homeAssistantStarted() }
      return
    }
    if message.topic.hasPrefix("\(configuration.discoveryPrefix ?? "")/device/"), message.topic.hasSuffix("/config") {
      guard announcements?.found(message) == true else { return }
      for device in publisher.deviceNames { announce(device) }
      return removeOthers()
    }
    commands?.received(message)
  }

  /// Home Assistant reads retained messages, but loses expired ones; after a random delay everything is sent again.
  private func homeAssistantStarted() {
    guard !isBirthPending else { return }
    isBirthPending = true
    let delay = Double.random(in: Self.birthDelay)
    OneShot(after: Int64(delay * 1e9), loop: loop) { [weak self] in
      self?.isBirthPending = false
      if self?.sender?.isConnected == true { self?.publishAll() }
    }
  }

  private func updateStatus() {
    let problem = brokerFailure ?? sender?.problem ?? daemonFailure
    Notify.status(problem ?? "connected to \(configuration.broker.description)")
  }
}
