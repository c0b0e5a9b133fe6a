// One device: passes link events and clients' commands to the protocol state machine of its kind, one at a time, and carries out the
// machine's effects. Independent of the protocol. A failure of one device affects neither the daemon nor other devices.

import Logging
import Protocols

@Loop final class Device {
  let name: String
  let kind: String
  /// A safety notice for the owner, if the kind has one.
  let warning: String?
  let log: DeviceLog
  private(set) var ports: [LinkSupervisor] = []
  /// The schema that the machine declares now.
  private(set) var schema: Schema
  weak var observer: (any DeviceObserver)?
  /// The subscribers to the traffic of the links.
  let monitor = LinkMonitor()

  private var machine: any Machine
  private var effects = Effects()
  /// Storage for effects, shared by all devices and lent to a device while its machine runs. If one run nests in another, the inner one
  /// allocates its own.
  private static var effectsStorage = Effects()
  private var inputs: [(input: Input, time: Instant?)] = []
  private var isHandling = false
  /// The time of the last input, which no later input precedes.
  private var lastTime = Instant.min
  /// The fault that the machine reports, for the user.
  private(set) var fault: String?
  /// The current motion lease.
  private(set) var lease: Lease?
  private let commands = PendingCommands()
  private let services: Services
  /// The pending HTTP requests.
  private var requests: [RequestID: HTTPClient.TransferID] = [:]
  /// The commands that wait for `open`; nil if commands go directly to the machine.
  private var queuedCommands: [(id: CommandID, command: Command)]?
  private var isClosing = false
  /// The timeout and completions of a shutdown sequence in progress.
  private var shutdown: (deadline: Timer, completions: [@Loop () -> Void])?
  /// Whether to reconnect after the shutdown sequence.
  private var reconnectsAfterShutdown = false
  private var isOpen = false
  private(set) lazy var disconnectRequest = DisconnectRequest(device: name, disk: services.disk)
  private lazy var wake = Timer { [weak self] _ in self?.handle(.wake) }

  /// Creates a device; `open` starts it.
  init(name: String, kind: String, machine: any Machine, links: [(LinkRole, LinkURL)], warning: String? = nil, services: Services) {
    (self.name, self.kind, self.warning) = (name, kind, warning)
    (self.machine, self.services) = (machine, services)
    schema = machine.schema
    log = DeviceLog(device: name)
    ports = links.map { port(as: $0.0, to: $0.1) }
  }

  /// Passes the restored state to the machine and starts to connect, unless the device was closed meanwhile.
  func open(restored: [String: [UInt8]]) {
    guard !isClosing else { return }
    isOpen = true
    var restored = restored
    let staysDown = disconnectRequest.restore(&restored)
    handle(.started(restored: restored, wall: Clock.wallTime()))
    for (id, command) in queuedCommands.take() ?? [] { handle(.perform(id, command)) }
    ports.forEach { port in staysDown ? port.close(downReason) : port.open() }
  }

  /// Queues commands until `open`: without its restored state, a machine could give wrong replies.
  func queueCommandsUntilOpen() { queuedCommands = [] }

  /// Connects at a user's request, once any shutdown sequence in progress has ended. `finish` is called once the request is stored, with an
  /// error if that failed.
  func connect(then finish: @escaping @Loop (String?) -> Void = { _ in }) {
    disconnectRequest.set(false, then: finish)
    guard !isClosing else { return }
    reconnectsAfterShutdown = shutdown != nil
    if !reconnectsAfterShutdown, isOpen { ports.forEach { $0.open() } }
  }

  /// Runs the machine's shutdown sequence, then keeps the links down until `connect`, even across restarts of the daemon. `finish`
  /// is called once the sequence has ended and the request is stored, with an error if storing failed.
  func disconnect(then finish: @escaping @Loop (String?) -> Void = { _ in }) {
    reconnectsAfterShutdown = false
    if !isClosing { shutDown(downReason) {} }
    disconnectRequest.set(true) { failure in
      if self.shutdown == nil { finish(failure) } else { self.shutdown?.completions.append { finish(failure) } }
    }
  }

  private var downReason: String { "disconnected on request; to reconnect: vehiclectl connect \(name)" }

  /// Runs the machine's shutdown sequence, then closes the links for good. `reason` is nil when the daemon stops.
  func close(_ reason: String? = nil, then finish: @escaping @Loop () -> Void) {
    isClosing = true
    shutDown(reason ?? "the daemon is stopping") {
      self.wake.set(nil)
      self.log.close()
      self.requests.values.forEach(self.services.http.cancel)
      self.requests = [:]
      // When the daemon stops, subscribers lose their connection and must not see a change of the configuration.
      if reason != nil { self.monitor.end() }
      finish()
    }
  }

  private func shutDown(_ reason: String, then finish: @escaping @Loop () -> Void) {
    guard shutdown == nil else { return shutdown?.completions.append(finish) ?? () }
    // The closure retains the device until it is closed.
    let deadline = Timer { _ in self.finishShutdown() }
    let close: @Loop () -> Void = { self.ports.forEach { $0.close(reason) } }
    shutdown = (deadline, [close, finish])
    deadline.set(Clock.monotonic() + 1_500 * .millisecond)
    for id in commands.ids { commands.complete(id, .failure(.notConnected(reason))) }
    queuedCommands = nil
    handleLeaseLoss(reason)
    handle(.stopping)
  }

  // MARK: Inputs and effects

  /// Passes an input to the machine. Inputs that occur in the meantime are queued. `time` is when it occurred, if that is known better than
  /// by the current time.
  func handle(_ input: Input, at time: Instant? = nil) {
    if isHandling { return inputs.append((input, time)) }
    isHandling = true
    var nextWake = runMachine(input, at: time)
    while !inputs.isEmpty {
      let next = inputs.removeFirst()
      nextWake = runMachine(next.input, at: next.time)
    }
    isHandling = false
    wake.set(nextWake)
    observer?.deviceTurnEnded()
  }

  /// Passes bytes from a link to the machine.
  func received(_ bytes: [UInt8], from port: LinkSupervisor, at time: Instant? = nil) {
    if !monitor.isIdle { monitor.record(.received, port.name, bytes, at: time) }
    handle(.received(port.name, bytes), at: time)
  }

  /// Handles a change of a link's state. Reports `down` to the machine; the port itself reports `up`, which has arguments.
  func portChanged(_ port: LinkSupervisor, from old: LinkSupervisor.State) {
    switch (old, port.state) {
    case (.down(let before), .down(let reason)) where before == reason: return
    case (_, .down(let reason)):
      let wasUp = if case .up = old { true } else { false }
      log.linkWentDown(port.name, reason, isNotable: wasUp || !isClosing)
      monitor.linkWentDown(port.name, reason)
      handle(.linkChanged(port.name, .down(reason)))
      // A device without its link cannot be driven, even if its machine does not end the lease.
      if port.name == .main { handleLeaseLoss("the link is down: \(reason)") }
    case (_, .up):
      log.linkCameUp(port.name, port.url.readable)
      monitor.linkCameUp(port.name, onlyReceives: port.role.onlyReceives)
    case (_, .connecting): break
    }
    observer?.deviceLinkChanged(port)
  }

  /// Handles changed details of a link.
  func portDetailsChanged(_ port: LinkSupervisor) {
    if let reason = port.waitReason { log.linkWaits(port.name, reason) }
    if let problem = port.problem { log.linkHasProblem(port.name, problem) }
    observer?.deviceLinkChanged(port)
  }

  /// Runs the machine for one input and carries out its effects. Returns the time of the next wake-up.
  private func runMachine(_ input: Input, at time: Instant?) -> Instant? {
    lastTime = max(lastTime, time ?? Clock.monotonic())
    effects.exchangeStorage(with: &Self.effectsStorage)
    defer {
      effects.removeAll()
      effects.exchangeStorage(with: &Self.effectsStorage)
    }
    let nextWake = machine.handleAndReturnNextWake(input, at: lastTime, &effects)
    guard !effects.isEmpty else { return nextWake }
    // The machine is not called while its effects are carried out (`handle` queues), so `effects` does not change.
    // Readings refer to positions in the new schema.
    for case .declare(let schema) in effects.list {
      self.schema = schema
      observer?.deviceSchemaChanged(schema)
    }
    if !effects.readings.isEmpty { observer?.deviceUpdated(effects.readings) }
    for effect in effects.list { perform(effect) }
    return nextWake
  }

  private func perform(_ effect: Effect) {
    switch effect {
    case .send(let link, let bytes, let id, let secret):
      if !monitor.isIdle { monitor.record(.sent, link, bytes, secret: secret) }
      if let port = port(link) {
        port.send(bytes, id: id)
      } else if let id {
        handle(.sent(id, failure: "no link \(link)"))
      }
    case .sendUnlessBacklogged(let link, let bytes, let id, let maxBacklog):
      if let backlog = port(link)?.backlog, backlog > maxBacklog {
        handle(.sent(id, failure: "the peer has not acknowledged the last \(backlog) bytes"))
      } else {
        perform(.send(link, bytes, id, secret: false))
      }
    case .lastWill(let link, let will): port(link)?.setLastWill(will)
    case .event(let event, let text):
      log.log(event: event, text)
      observer?.deviceReports(event: event, text: text)
    case .progress(let id, let report): commands.report(id, report)
    case .complete(let id, let result): commands.complete(id, result)
    case .status(let state): observer?.deviceStateChanged(state)
    case .fault(let text): report(fault: text)
    case .note(let text): log.logger.debug("\(text)")
    case .resetLink(let link, let reason): port(link)?.reset(reason)
    case .openLink(let link, let url): open(link) { () throws(LinkURLError) in try LinkURL(url) }
    case .closeLink(let link):
      port(link)?.close("closed by the device")
      ports.removeAll { $0.name == link }
    case .setBaud(let link, let baud): port(link)?.setBaud(baud)
    case .listen(let link, let address, let network):
      open(link) { () throws(LinkURLError) in
        guard case .tcp(let host, let port) = try LinkURL("tcp:\(address)") else {
          throw LinkURLError(at: 0, "\(address) is not a local port")
        }
        return .listening(host: host, port: port, network: network)
      }
    case .filter(let link, let filters): port(link)?.setFilter(filters)
    case .request(let id, let request): send(id, request)
    case .query(let id, let query): services.disk.query(query) { [weak self] in self?.handle(.rows(id, $0)) }
    case .requestTime: handle(.time(Clock.wallTime()))
    case .observe(let reference): observer?.deviceObserves(reference)
    case .store(let key, let bytes):
      services.disk.store(device: name, key: key, bytes) { [weak self] failure in
        if let failure { self?.log.log(.error, "\(failure)") }
        self?.handle(.stored(key: key, failure: failure))
      }
    case .leaseLost(let reason): handleLeaseLoss(reason)
    case .declare: break  // handled in `runMachine`
    case .stopped: finishShutdown()
    }
  }

  /// Sends an HTTP request. A request with the same ID as a pending one replaces it.
  private func send(_ id: RequestID, _ request: HTTPRequest) {
    if let earlier = requests[id] { services.http.cancel(earlier) }
    requests[id] = services.http.send(request) { [weak self] response in
      self?.requests[id] = nil
      self?.handle(.response(id, response))
    }
  }

  private func port(_ name: LinkName) -> LinkSupervisor? {
    for port in ports where port.name == name { return port }
    return nil
  }

  private func port(as role: LinkRole, to url: LinkURL) -> LinkSupervisor {
    LinkSupervisor(role, url, device: self, links: services.links, guardian: services.guardian)
  }

  private func open(_ name: LinkName, _ url: () throws(LinkURLError) -> LinkURL) {
    do throws(LinkURLError) {
      let url = try url()
      port(name)?.close("replaced")
      ports.removeAll { $0.name == name }
      let port = port(as: LinkRole(name, schemes: [url.scheme]), to: url)
      ports.append(port)
      port.open()
    } catch {
      handle(.linkChanged(name, .down("\(error)")))
    }
  }

  private func report(fault text: String?) {
    fault = text
    observer?.deviceFaultOrLeaseChanged()
    if let text { return log.log(.warning, text) }
    if port(.main)?.isUp != false, !isClosing { log.log(.notice, "fault cleared", isRecovery: true) }
  }

  /// Completes the shutdown sequence, which has ended or timed out.
  private func finishShutdown() {
    guard let shutdown else { return }
    self.shutdown = nil
    shutdown.deadline.set(nil)
    shutdown.completions.forEach { $0() }
    guard reconnectsAfterShutdown, !isClosing else { return }
    reconnectsAfterShutdown = false
    ports.forEach { $0.open() }
  }

  // MARK: The motion lease

  /// Grants a lease. Requires that there is none.
  func grant(_ lease: Lease) {
    self.lease = lease
    log.logger.notice("\(lease.holder) acquired the motion lease", metadata: ["event": "lease"])
    observer?.deviceFaultOrLeaseChanged()
    handle(.leaseBegan(deadline: lease.deadline))
    updateGuardian()
  }

  /// Starts or stops the guardian's watch over the links with last-will frames: it watches them only while there is a lease.
  private func updateGuardian() {
    for link in ports.compactMap(\.guardedLink) {
      if let lease { services.guardian.watch(link, within: lease.deadline) } else { services.guardian.unwatch(link) }
    }
  }

  /// Handles new last-will frames of a link.
  func lastWillChanged(_ port: LinkSupervisor) {
    if lease != nil { updateGuardian() }
  }

  /// Ends the lease before its holder releases it, for example because the guardian has stopped the vehicle or the daemon is stopping.
  /// The machine stops the vehicle.
  func revokeLease(_ reason: String) {
    guard let lease else { return }
    endLease("the motion lease of \(lease.holder) was revoked: \(reason)", reason)
    lease.lost(reason)
  }

  /// Why the guardian, which stops the vehicle if the daemon dies, is unavailable, or nil if it is available. Without the guardian, no
  /// lease is granted.
  var guardianUnavailableReason: String? { services.guardian.unavailableReason }

  /// Why the device cannot be reached, or nil while its link is up.
  var unreachableReason: String? { port(.main).map(\.downReason) ?? "the device has no link" }

  /// Ends the lease with this token because its holder disconnected. Does nothing if the lease has already ended.
  func releaseLease(_ token: String, _ reason: String) {
    guard let lease, lease.token == token else { return }
    endLease("\(lease.holder) released the motion lease: \(reason)", reason)
  }

  /// Ends the lease, logs the message, and reports the reason to the machine, which stops the vehicle.
  private func endLease(_ message: String, _ reason: String) {
    lease = nil
    log.logger.notice("\(message)", metadata: ["event": "lease"])
    handle(.leaseEnded(reason))
    updateGuardian()
    observer?.deviceFaultOrLeaseChanged()
  }

  /// Ends the lease without a report to the machine, because the machine has ended it or cannot reach the vehicle.
  private func handleLeaseLoss(_ reason: String) {
    guard let lease else { return }
    self.lease = nil
    log.logger.warning("\(lease.holder) lost the motion lease: \(reason)", metadata: ["event": "lease"])
    updateGuardian()
    observer?.deviceFaultOrLeaseChanged()
    lease.lost(reason)
  }

  // MARK: Commands

  /// Passes a validated command to the machine. `finish` is called exactly once, unless the command is cancelled.
  func perform(
    _ command: Command, progress: @escaping @Loop (Report) -> Void = { _ in },
    finish: @escaping @Loop (Result<Report, CommandError>) -> Void
  ) -> CommandID {
    let id = commands.begin(progress: progress, finish: finish) { [weak self] in self?.endCommand($0) }
    if queuedCommands != nil { queuedCommands?.append((id, command)) } else { handle(.perform(id, command)) }
    return id
  }

  /// Cancels a command because its caller disconnected.
  func cancel(_ id: CommandID) {
    if commands.drop(id) { endCommand(id) }
  }

  /// Removes a command from the queue, or reports its end to the machine.
  private func endCommand(_ id: CommandID) {
    if queuedCommands == nil { handle(.cancelled(id)) } else { queuedCommands?.removeAll { $0.id == id } }
  }
}
