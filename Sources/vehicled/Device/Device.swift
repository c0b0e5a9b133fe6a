// Joins the links and the machine of one device: hands the machine everything that happens, in order, and does what it
// answers. Knows nothing of any protocol. A device never takes the daemon down, nor another device with it.

import Logging
import Protocols

@Loop final class Device {
  let name: String
  let kind: String
  /// What whoever runs it should know about its safety.
  let caution: String?
  let equipment: Equipment
  let log: Logger
  private(set) var ports: [Port] = []
  /// What the machine declares now.
  private(set) var schema: Schema
  weak var observer: (any DeviceObserver)?
  /// Everybody who records the links.
  let taps = Taps()

  private var machine: any Machine
  private var effects = Effects()
  private var inputs: [Input] = []
  private var turning = false
  /// What is wrong with the device, in a person's words.
  private(set) var fault: String?
  /// Who may move it now.
  private(set) var lease: Lease?
  /// Why each link was last said to be down.
  private var reasons: [LinkName: String] = [:]
  /// What each link was said to wait for since it was last up.
  private var waits: [LinkName: Set<String>] = [:]
  private static let maxWaits = 32
  private let commands = PendingCommands()
  /// What it asked HTTP servers, and what is not answered yet.
  private var requests: [RequestID: HTTPClient.Ticket] = [:]
  /// Commands that wait for `open`; nil: none has to.
  private var early: [(id: CommandID, command: Command)]?
  private var isClosing = false
  /// Who waits for the last words to be said, and until when they may take; nil: there are none.
  private var ending: (deadline: Timer, told: [@Loop () -> Void])?
  /// A person wants it connected again once they are.
  private var connectsAgain = false
  private var isOpen = false
  private(set) lazy var disconnection = Disconnection(device: name, disk: equipment.disk)
  private lazy var wake = Timer { [weak self] _ in self?.take(.wake) }
  private var repeats = Repeats()
  private lazy var minute: Timer = Timer { [weak self] now in
    guard let self else { return }
    repeats.end(at: now).forEach(tell)
    minute.set(repeats.due)
  }

  /// A device of this machine; `open` starts it.
  init(name: String, kind: String, machine: any Machine, links: [(LinkRole, LinkURL)], caution: String? = nil, equipment: Equipment) {
    self.name = name
    self.kind = kind
    self.machine = machine
    self.caution = caution
    self.equipment = equipment
    schema = machine.schema
    var log = Logger(label: "vehicled")
    log[metadataKey: "device"] = "\(name)"
    self.log = log
    ports = links.map { Port($0.0, $0.1, device: self) }
  }

  /// Gives the machine what it stored in earlier runs and begins to connect, unless it was closed meanwhile.
  func open(restored: [String: [UInt8]]) {
    guard !isClosing else { return }
    isOpen = true
    var restored = restored
    let staysDown = disconnection.restore(&restored)
    take(.started(restored: restored, wall: Clock.wallTime()))
    let waiting = early ?? []
    early = nil
    for (id, command) in waiting { take(.perform(id, command)) }
    ports.forEach { port in staysDown ? port.close(downReason) : port.open() }
  }

  /// Commands wait until it is opened: a machine that does not have what was kept of earlier runs would say untrue things.
  func awaitOpening() { early = [] }

  /// Connects now, because a person asked; last words that are just being said come first. `finish` is told once the disk has that,
  /// or why it does not.
  func connect(then finish: @escaping @Loop (String?) -> Void = { _ in }) {
    disconnection.set(false, then: finish)
    guard !isClosing else { return }
    connectsAgain = ending != nil
    if !connectsAgain, isOpen { ports.forEach { $0.open() } }
  }

  /// Lets the machine say its last words, then holds the links down until `connect`, over restarts of the daemon too. `finish` is
  /// told when all of it is done and the disk has it, or why it does not.
  func disconnect(then finish: @escaping @Loop (String?) -> Void = { _ in }) {
    connectsAgain = false
    if !isClosing { sayLastWords(downReason) {} }
    disconnection.set(true) { failure in
      if self.ending == nil { finish(failure) } else { self.ending?.told.append { finish(failure) } }
    }
  }

  private var downReason: String { "disconnected on request: vehiclectl connect \(name)" }

  /// Lets the machine say its last words, then closes the links for good. Without a reason the daemon stops.
  func close(_ reason: String? = nil, then finish: @escaping @Loop () -> Void) {
    isClosing = true
    sayLastWords(reason ?? "the daemon stops") {
      self.wake.set(nil)
      self.repeats.end(at: Clock.monotonic()).forEach(self.tell)
      self.minute.set(nil)
      self.requests.values.forEach(self.equipment.http.cancel)
      self.requests = [:]
      // Where the daemon stops those who listen lose their connection, and are not to take it for a change of configuration.
      if reason != nil { self.taps.end() }
      finish()
    }
  }

  private func sayLastWords(_ reason: String, then finish: @escaping @Loop () -> Void) {
    guard ending == nil else { return ending?.told.append(finish) ?? () }
    // Holds the device until it is closed: whoever asked may have let it go.
    let deadline = Timer { _ in self.closed() }
    let close: @Loop () -> Void = { self.ports.forEach { $0.close(reason) } }
    ending = (deadline, [close, finish])
    deadline.set(Clock.monotonic() + 1_500 * .millisecond)
    for id in commands.ids { commands.complete(id, .failure(.notConnected(reason))) }
    early = nil
    lose(reason)
    take(.stopping)
  }

  // MARK: What happens

  /// Takes an input. Inputs that arise while another is dealt with wait for their turn.
  func take(_ input: Input) {
    if turning { return inputs.append(input) }
    turning = true
    var nextWake = turn(input)
    while !inputs.isEmpty { nextWake = turn(inputs.removeFirst()) }
    turning = false
    wake.set(nextWake)
    observer?.deviceTurnEnded()
  }

  /// Takes bytes from a link.
  func received(_ bytes: [UInt8], from port: Port) {
    if !taps.isIdle { taps.record(.received, port.name, bytes) }
    take(.received(port.name, bytes))
  }

  /// Takes note that a link changed; the machine is told of its end here, of its beginning by the port.
  func portChanged(_ port: Port, from old: Port.State) {
    switch (old, port.state) {
    case (.down(let before), .down(let reason)) where before == reason: return
    case (_, .down(let reason)):
      // Trying again and again for the same reason is no news.
      if reasons.updateValue(reason, forKey: port.name) != reason {
        say(.notice, "link is down: \(reason)", of: port.name)
      }
      taps.linkWentDown(port.name, reason)
      take(.linkChanged(port.name, .down(reason)))
      // Nobody drives what cannot be reached, whatever its machine thinks of that.
      if port.name == .main { lose("the link is down: \(reason)") }
    case (_, .up):
      reasons[port.name] = nil
      waits[port.name] = nil
      say(.notice, "link is up: \(port.url)", of: port.name, isRelief: true)
      taps.linkCameUp(port.name)
    case (_, .connecting): break
    }
    observer?.deviceLinkChanged(port)
  }

  /// Takes note that a connecting link waits for something else. Each is said once in the journal, however often it tries.
  func portHasNews(_ port: Port) {
    if let words = port.words, waits[port.name, default: []].count < Self.maxWaits, waits[port.name, default: []].insert(words).inserted {
      log.info("\(words)", metadata: ["link": "\(port.name)"])
    }
    observer?.deviceLinkChanged(port)
  }

  private func turn(_ input: Input) -> Instant? {
    let nextWake = machine.take(input, at: Clock.monotonic(), &effects)
    guard !effects.isEmpty else { return nextWake }
    // The machine is not called while its effects are done (`take` queues), so they can be read where they lie.
    // Readings stand at their places in the schema as it is from this turn on.
    for case .declare(let schema) in effects.list {
      self.schema = schema
      observer?.deviceDeclares(schema)
    }
    if !effects.readings.isEmpty { observer?.deviceLearned(effects.readings) }
    for effect in effects.list { perform(effect) }
    effects.removeAll()
    return nextWake
  }

  private func perform(_ effect: Effect) {
    switch effect {
    case .send(let link, let bytes, let id, let secret):
      if !taps.isIdle { taps.record(.sent, link, bytes, secret: secret) }
      if let port = port(link) {
        port.send(bytes, id: id)
      } else if let id {
        take(.sent(id, failure: "there is no link \(link)"))
      }
    case .sendUnlessBehind(let link, let bytes, let id, let most):
      if let backlog = port(link)?.backlog, backlog > most {
        take(.sent(id, failure: "the other side has not acknowledged the last \(backlog) bytes"))
      } else {
        perform(.send(link, bytes, id, secret: false))
      }
    case .will(let link, let will): port(link)?.leave(will)
    case .event(let event, let text):
      say(Repeats.Line(level: .notice, text: text, event: event))
      observer?.deviceReports(event: event, text: text)
    case .progress(let id, let report): commands.report(id, report)
    case .complete(let id, let result): commands.complete(id, result)
    case .status(let word): observer?.deviceSays(word)
    case .fault(let text): report(fault: text)
    case .note(let text): log.debug("\(text)")
    case .resetLink(let link, let reason): port(link)?.reset(reason)
    case .openLink(let link, let url): open(link) { () throws(LinkURLError) in try LinkURL(url) }
    case .closeLink(let link):
      port(link)?.close("closed by the device")
      ports.removeAll { $0.name == link }
    case .setBaud(let link, let baud): port(link)?.setBaud(baud)
    case .listen(let link, let place, let network):
      open(link) { () throws(LinkURLError) in
        guard case .tcp(let host, let port) = try LinkURL("tcp:\(place)") else { throw LinkURLError(at: 0, "\(place) is no port of ours") }
        return .listening(host: host, port: port, network: network)
      }
    case .request(let id, let request): ask(id, request)
    case .query(let id, let query): equipment.disk.ask(query) { [weak self] in self?.take(.rows(id, $0)) }
    case .requestTime: take(.time(Clock.wallTime()))
    case .observe(let reference): observer?.deviceObserves(reference)
    case .store(let key, let bytes):
      equipment.disk.store(device: name, key: key, bytes) { [weak self] failure in
        if let failure { self?.say(.error, "\(failure)") }
        self?.take(.stored(key: key, failure: failure))
      }
    case .leaseLost(let reason): lose(reason)
    case .declare: break  // it came first
    case .stopped: closed()
    }
  }

  /// Asks an HTTP server. A machine that uses a number again wants the newer answer.
  private func ask(_ id: RequestID, _ request: HTTPRequest) {
    if let earlier = requests[id] { equipment.http.cancel(earlier) }
    requests[id] = equipment.http.send(request) { [weak self] response in
      self?.requests[id] = nil
      self?.take(.response(id, response))
    }
  }

  private func port(_ name: LinkName) -> Port? {
    for port in ports where port.name == name { return port }
    return nil
  }

  private func open(_ name: LinkName, _ place: () throws(LinkURLError) -> LinkURL) {
    do throws(LinkURLError) {
      let url = try place()
      port(name)?.close("replaced")
      ports.removeAll { $0.name == name }
      let port = Port(LinkRole(name, schemes: [url.scheme]), url, device: self)
      ports.append(port)
      port.open()
    } catch {
      take(.linkChanged(name, .down("\(error)")))
    }
  }

  private func report(fault text: String?) {
    guard text != fault else { return }
    fault = text
    observer?.deviceStandingChanged()
    if let text { say(.warning, text) } else if port(.main)?.isUp != false { say(.notice, "all is well again", isRelief: true) }
  }

  /// For the journal, unless it says so all the time.
  private func say(_ level: Logger.Level, _ text: String, of link: LinkName? = nil, isRelief: Bool = false) {
    say(Repeats.Line(level: level, text: text, link: link, isRelief: isRelief))
  }

  private func say(_ line: Repeats.Line) {
    if repeats.admits(line, at: Clock.monotonic()) { tell(line) }
    minute.set(repeats.due)
  }

  private func tell(_ line: Repeats.Line) {
    log.log(level: line.level, "\(line.text)", metadata: line.link.map { ["link": "\($0)"] } ?? line.event.map { ["event": "\($0)"] })
  }

  private func closed() {
    guard let ending else { return }
    self.ending = nil
    ending.deadline.set(nil)
    ending.told.forEach { $0() }
    guard connectsAgain, !isClosing else { return }
    connectsAgain = false
    ports.forEach { $0.open() }
  }

  // MARK: The motion lease

  /// Whoever holds this may move the device. The machine watches that set-points keep coming; whoever asked for the lease
  /// watches the client.
  struct Lease {
    /// What set-points carry.
    let token: String
    let user: UInt32
    /// For others to read: who it is.
    let holder: String
    /// How long set-points may stay away.
    let deadline: Nanoseconds
    /// Told once, when the lease ends otherwise than by `endLease`.
    let lost: @Loop (String) -> Void
  }

  /// Hands the lease out; only while nobody has it.
  func begin(_ lease: Lease) {
    self.lease = lease
    log.notice("\(lease.holder) drives", metadata: ["event": "lease"])
    observer?.deviceStandingChanged()
    take(.leaseBegan(deadline: lease.deadline))
    watchForFreezing()
  }

  /// The guardian looks after whatever has a will while somebody drives, and only then.
  private func watchForFreezing() {
    for ward in ports.compactMap(\.ward) {
      if let lease { equipment.guardian.watch(ward, within: lease.deadline) } else { equipment.guardian.unwatch(ward) }
    }
  }

  /// A link has another will than before, or none.
  func willChanged(_ port: Port) {
    if lease != nil { watchForFreezing() }
  }

  /// Takes the lease back, and says why: the guardian took us for frozen and has stopped the vehicle, say, or the daemon stops.
  func revokeLease(_ reason: String) {
    guard let lease else { return }
    endLease(lease.token, reason)
    lease.lost(reason)
  }

  /// Why it cannot be reached, or nil while it can.
  var reasonDown: String? {
    guard let port = port(.main) else { return "it has no link" }
    switch port.state {
    case .up: return nil
    case .connecting: return port.words ?? "connecting"
    case .down(let reason): return reason
    }
  }

  /// Takes the lease back, because its holder is gone.
  func endLease(_ token: String, _ reason: String) {
    guard let lease, lease.token == token else { return }
    self.lease = nil
    log.notice("\(lease.holder) drives no more: \(reason)", metadata: ["event": "lease"])
    take(.leaseEnded(reason))
    watchForFreezing()
    observer?.deviceStandingChanged()
  }

  /// The lease has ended by itself.
  private func lose(_ reason: String) {
    guard let lease else { return }
    self.lease = nil
    log.warning("\(lease.holder) has lost the motion lease: \(reason)", metadata: ["event": "lease"])
    watchForFreezing()
    observer?.deviceStandingChanged()
    lease.lost(reason)
  }

  // MARK: Commands

  /// Gives the machine a command that was checked against the schema. `finish` is told exactly once, unless it is cancelled.
  func perform(
    _ command: Command, progress: @escaping @Loop (Report) -> Void = { _ in },
    finish: @escaping @Loop (Result<Report, CommandError>) -> Void
  ) -> CommandID {
    let id = commands.begin(progress: progress, finish: finish) { [weak self] in self?.forget($0) }
    if early != nil { early?.append((id, command)) } else { take(.perform(id, command)) }
    return id
  }

  /// The caller is gone.
  func cancel(_ id: CommandID) {
    if commands.drop(id) { forget(id) }
  }

  private func forget(_ id: CommandID) {
    if early != nil { early?.removeAll { $0.id == id } } else { take(.cancelled(id)) }
  }
}
