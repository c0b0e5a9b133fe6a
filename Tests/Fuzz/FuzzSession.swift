// A session of a machine with the device, links and clients that libFuzzer's input describes. The session owns what all machines have
// in common: the links, the lease, the clock and the commands, and the invariants of these. A fuzzer adds its own steps and invariants.
// Part of each fuzzer of a single machine.

/// A step of a session: one byte of the input, and an argument in the next byte.
struct FuzzStep<Session: FuzzSession> {
  fileprivate let hasArgument: Bool
  fileprivate let run: (_ session: inout Session, _ argument: UInt8) -> Void

  static func step(_ run: @escaping (_ session: inout Session) -> Void) -> Self {
    Self(hasArgument: false) { session, _ in run(&session) }
  }
  static func withArgument(_ run: @escaping (_ session: inout Session, _ argument: UInt8) -> Void) -> Self {
    Self(hasArgument: true, run: run)
  }

  static var cancel: Self { withArgument { $0.cancel(distance: $1) } }
  static var completeSend: Self { withArgument { $0.completeSend(failure: $1 == 1 ? "refused" : nil) } }
  static var acquireLease: Self { step { $0.acquireLease() } }
  static var restore: Self { step { $0.restore() } }
  /// Adds a byte to the pending ones that would otherwise be a step.
  static var escape: Self { withArgument { $0.state.pending.append($1) } }
}

/// A fuzzer of one machine: a value that lives as long as one input of libFuzzer.
protocol FuzzSession {
  associatedtype Tested: Machine
  /// The byte of the first step, with the low four bits clear. The bytes with the same high four bits are steps; all others are pending.
  static var firstStep: UInt8 { get }
  /// The steps, in the order of their bytes: the five of `linkSteps`, then the fuzzer's own. Unused bytes are skipped.
  static var steps: [FuzzStep<Self>] { get }
  /// The maximum length of a published string in bytes.
  static var maxStringLength: Int { get }
  /// The keys of the values that the machine stores.
  static var storedKeys: [String] { get }
  var state: FuzzState<Tested> { get set }

  /// Creates a session with the configuration that the bits of `options` choose; nil if the machine rejects it.
  init?(options: UInt8)
  /// Called before an input is given to the machine and recorded in the state.
  mutating func prepare(for input: Input)
  mutating func check(_ reading: Reading)
  /// Called before the effect is recorded in the state.
  mutating func check(_ effect: Effect)
  /// Checks the machine after an input: the bounds of its buffers and queues.
  func checkMachine()
  /// Connects the main link, which can be up already.
  mutating func connect()
  /// Does what the device does between `stopping` and the end of the machine: completes sends and stores, closes the links.
  mutating func shutDown()
}

extension FuzzSession {
  mutating func prepare(for input: Input) {}
  mutating func check(_ reading: Reading) {}
  mutating func check(_ effect: Effect) {}
  mutating func shutDown() {}

  /// The steps that all fuzzers have: receive, wake, advance the clock, disconnect and connect.
  static var linkSteps: [FuzzStep<Self>] {
    [
      .step { $0.receive() }, .step { $0.wake() }, .withArgument { $0.state.now += 1 << Int64($1 % 44) }, .step { $0.disconnect() },
      .step { $0.connect() },
    ]
  }

  /// Runs one input of libFuzzer: a byte of options, then steps and received bytes.
  static func run(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    var bytes = UnsafeBufferPointer(start: start, count: count)[...]
    guard let options = bytes.popFirst(), var session = Self(options: options) else { return 0 }
    let steps = Self.steps
    session.connect()
    while let byte = bytes.popFirst() {
      guard byte & 0xF0 == firstStep else { session.state.pending.append(byte); continue }
      let index = Int(byte & 0x0F)
      guard index < steps.count else { continue }
      let argument = steps[index].hasArgument ? bytes.popFirst() ?? 0 : 0
      steps[index].run(&session, argument)
    }
    session.receive()
    session.stop()
    return 0
  }

  /// Gives the machine an input, and checks everything that it does in response.
  mutating func give(_ input: Input) {
    prepare(for: input)
    state.give(input, maxStringLength: Self.maxStringLength)
    for reading in state.effects.readings { check(reading) }
    for effect in state.effects.list {
      check(effect)
      state.record(effect)
    }
    state.finish(input)
    checkMachine()
  }

  // Links and time.

  /// Delivers the pending bytes over the main link.
  mutating func receive() { give(.received(.main, state.takePending())) }
  mutating func connect() { give(.linkChanged(.main, .up(maximumSend: nil))) }
  mutating func disconnect() { give(.linkChanged(.main, .down("gone"))) }

  mutating func completeSend(failure: String? = nil) {
    if let id = state.outstandingSend { give(.sent(id, failure: failure)) }
  }

  /// Advances the clock to the next wake, and wakes the machine.
  mutating func wake() {
    if let due = state.machine.nextWake { state.now = max(state.now, due) }
    give(.wake)
  }

  // Clients.

  mutating func perform(_ command: Command) { give(.perform(state.lastCommand + 1, command)) }
  /// Disconnects the client of the command that is this many before the last one.
  mutating func cancel(distance: UInt8) { give(.cancelled(state.lastCommand &- CommandID(distance))) }

  mutating func acquireLease() {
    if !state.hasLease { give(.leaseBegan(deadline: 300 * .millisecond)) }
  }
  mutating func releaseLease() { give(.leaseEnded("done")) }

  // The daemon.

  /// Starts the machine with the pending bytes as each of its stored values.
  mutating func restore() {
    let values = Dictionary(uniqueKeysWithValues: Self.storedKeys.map { ($0, state.pending) })
    give(.started(restored: values, wall: WallTime(microseconds: 0)))
  }
  /// Completes the storing of all values.
  mutating func completeStores(failure: String? = nil) {
    for key in Self.storedKeys { give(.stored(key: key, failure: failure)) }
  }

  /// Stops the machine, and requires that it needs nothing any more.
  mutating func stop() {
    give(.stopping)
    shutDown()
    state.checkStopped()
  }
}

/// The machine of a session, and what its device knows: the links, the lease and the commands.
struct FuzzState<Tested: Machine> {
  var machine: Tested
  var now: Instant
  /// The bytes that the next `receive` delivers.
  var pending: [UInt8] = []
  /// The links that are up.
  private var links: Set<LinkName> = []
  /// The send over the main link that the link has not completed yet.
  private(set) var outstandingSend: SendID?
  /// A client holds the motion lease.
  private(set) var hasLease = false
  /// The number of commands so far, which is the ID of the last one.
  private(set) var lastCommand: CommandID = 0
  private var openCommands: Set<CommandID> = []
  private var cancelledCommands: Set<CommandID> = []
  /// The effects of the last input.
  private(set) var effects = Effects()

  init(_ machine: Tested, now: Instant = 1) { (self.machine, self.now) = (machine, now) }

  /// The main link is up.
  var isConnected: Bool { links.contains(.main) }

  mutating func takePending() -> [UInt8] {
    defer { pending = [] }
    return pending
  }

  fileprivate mutating func give(_ input: Input, maxStringLength: Int) {
    record(input)
    machine.handleAndCheck(input, at: now, maxStringLength: maxStringLength, &effects)
  }

  private mutating func record(_ input: Input) {
    switch input {
    case .linkChanged(let link, .up):
      links.insert(link)
      if link == .main { outstandingSend = nil }
    case .linkChanged(let link, .down): close(link)
    case .sent: outstandingSend = nil
    case .leaseBegan: hasLease = true
    case .leaseEnded: hasLease = false
    case .perform(let id, _):
      lastCommand = id
      openCommands.insert(id)
    case .cancelled(let id):
      if openCommands.remove(id) != nil { cancelledCommands.insert(id) }
    default: break
    }
  }

  fileprivate mutating func record(_ effect: Effect) {
    switch effect {
    case .send(let link, _, let id, _): send(id, over: link)
    case .sendUnlessBacklogged(let link, _, let id, _): send(id, over: link)
    case .resetLink(let link, _), .closeLink(let link): close(link)
    case .leaseLost: hasLease = false
    case .complete(let id, _):
      let isFirst = openCommands.remove(id) != nil || cancelledCommands.remove(id) != nil
      require(isFirst, "command \(id) is completed twice, or was never given")
    default: break
    }
  }

  private mutating func send(_ id: SendID?, over link: LinkName) {
    require(links.contains(link), "send over link \(link), which is down")
    guard link == .main else { return }
    require(outstandingSend == nil, "second send before the first is completed")
    outstandingSend = id
  }

  private mutating func close(_ link: LinkName) {
    links.remove(link)
    if link == .main { outstandingSend = nil }
  }

  /// The device ends the lease after the machine has handled the loss of the link.
  fileprivate mutating func finish(_ input: Input) {
    if case .linkChanged(.main, .down) = input { hasLease = false }
  }

  /// Closes the links as the device does, and requires that no wake and no command remains.
  fileprivate mutating func checkStopped() {
    links = []
    outstandingSend = nil
    require(machine.nextWake == nil, "the stopped machine has a next wake")
    require(openCommands.isEmpty, "commands \(openCommands.sorted()) are never completed")
  }
}
