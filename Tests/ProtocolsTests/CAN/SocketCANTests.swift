// The frames of the kernel, and a car whose ECUs are on a CAN interface of the kernel.

import MachineTesting
import Testing

@testable import Peers
@testable import Protocols

/// A socket of the kernel with a simulated car on its bus.
struct SocketLink: LinkedSurroundings {
  private var link: PeerLink<ECUNode>
  /// The filters of the socket, in the order in which they were set.
  private(set) var filters: [[CANFilter]] = []

  init(_ node: ECUNode) { link = PeerLink(node) }

  var sends: [[UInt8]] { link.sends.map(\.bytes) }
  var nextWake: Instant? { link.nextWake }
  mutating func wake(at now: Instant) -> [Input] { filtered(link.wake(at: now)) }
  mutating func change(_ state: LinkState, at now: Instant) -> [Input] { link.change(state, at: now) }
  mutating func started(at now: Instant) -> [Input] {
    link.give(.started(restored: [:], wall: WallTime(microseconds: 0)), at: now) + change(.up(maximumSend: nil), at: now)
  }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .resetLink: return []
    case .filter(_, let filter):
      filters.append(filter)
      return []
    default: return link.perform(effect, at: now).map(filtered)
    }
  }

  /// The inputs without frames that the socket does not receive.
  private func filtered(_ inputs: [Input]) -> [Input] {
    inputs.filter { input in
      guard case .received(_, let bytes) = input else { return true }
      var passes = false
      SocketCAN.decode(bytes) { frame in
        passes = frame.kind == .error || filters.last?.contains { $0.matches(frame.identifier) } ?? true
      }
      return passes
    }
  }
}

typealias SocketRig = Host<VehicleMachine<FramesSession>, SocketLink>

extension SocketRig {
  init(_ car: any Car, faults: [CANFault] = []) {
    let session = FramesSession(.socket(bitRate: nil), maxLoad: 0.3)
    self.init(VehicleMachine(session, pauseConditions: PauseConditions()), SocketLink(ECUNode(car: car, faults: faults)))
    start()
  }

  /// Delivers an error frame of the kernel.
  mutating func deliverError(_ classes: UInt32, _ bytes: [UInt8] = Array(repeating: 0, count: 8)) {
    let word = classes | 0x2000_0000
    give(.received(.main, withUnsafeBytes(of: word) { Array($0) } + [8, 0, 0, 0] + bytes))
  }
}

@Suite struct SocketCANTests {
  @Test func `random frames survive the kernel's form`() {
    var random = SeededRandom(seed: 26)
    for _ in 0..<1000 {
      let frames = (0..<3).map { _ in CANFrame.random(&random) }
      var found: [CANFrame] = []
      SocketCAN.decode(frames.flatMap(SocketCAN.bytes)) { found.append($0) }
      #expect(found == frames)
    }
  }

  @Test func `truncated and impossible frames are dropped, and error frames keep their classes`() {
    var found: [CANFrame] = []
    let frame = SocketCAN.bytes(of: CANFrame("7E8#0641"))
    SocketCAN.decode(Array(frame.dropLast())) { found.append($0) }
    SocketCAN.decode([0xE8, 7, 0, 0, 9] + frame.dropFirst(5)) { found.append($0) }
    #expect(found.isEmpty)
    found = []
    SocketCAN.decode([0x44, 0, 0, 0x20, 8, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]) { found.append($0) }
    #expect(
      found.first?.kind == .error && found.first?.errorClasses == [.controller, .busOff] && found.first?.errorStatus == .errorPassive)
  }

  @Test func `an error frame survives the kernel's form`() {
    let frame = CANFrame(CANIdentifier(number: 0x44, is29Bit: true), .error, [0, 0x20, 0, 0, 0, 0, 0, 0])
    var found: [CANFrame] = []
    SocketCAN.decode(SocketCAN.bytes(of: frame)) { found.append($0) }
    #expect(found == [frame])
  }

  @Test func `a filter selects identifiers of one length`() {
    let responses = CANFilter(CANIdentifier(0x600), mask: 0x600)
    #expect(SocketCAN.words(of: responses) == [0x600, 0xC000_0600])
    #expect([0x600, 0x7E8, 0x7FF].allSatisfy { responses.matches(CANIdentifier(number: $0, is29Bit: false)) })
    #expect(!responses.matches(CANIdentifier(0x5FF)) && !responses.matches(CANIdentifier(number: 0x7E8, is29Bit: true)))
    let physical = CANFilter(CANIdentifier(0x18DA_F100), mask: 0x1FFF_FF00)
    #expect(SocketCAN.words(of: physical) == [0x98DA_F100, 0xDFFF_FF00])
    #expect(physical.matches(CANIdentifier(0x18DA_F110)) && !physical.matches(CANIdentifier(0x18DA_10F1)))
  }

  @Test func `error frames change the state of the interface`() {
    var state = CANInterfaceState()
    func error(_ classes: UInt32, _ flags: UInt8 = 0) -> CANFrame {
      CANFrame(CANIdentifier(number: classes, is29Bit: true), .error, [0, flags, 0, 0, 0, 0, 0, 0])
    }
    for (classes, flags, level) in [
      (4, 8, .warning), (4, 0x20, .passive), (0x88, 0, .passive), (4, 0x40, .active), (0x20, 0, .passive), (0x40, 0, .busOff),
      (0x100, 0, .active),
    ] as [(UInt32, UInt8, CANInterfaceState.Level)] {
      state.update(error(classes, flags), at: 0)
      #expect(state.level == level)
    }
    state.update(error(4, 1), at: 0)
    #expect(state.overruns == 1 && state.level == .active)
    state.update(CANFrame("040#0001"), at: 0)
    #expect(state.overruns == 1 && state.level == .active)
  }

  @Test func `the state of the interface ends when frames are received for some time without errors`() {
    var state = CANInterfaceState()
    state.update(CANFrame(CANIdentifier(number: 4, is29Bit: true), .error, [0, 0x21, 0, 0, 0, 0, 0, 0]), at: 0)
    state.received(drops: 3, at: .second)
    #expect(state.level == .passive && state.losesFrames && state.dropsFrames)
    state.received(drops: 3, at: 11 * .second)
    #expect(state.level == .active && state.losesFrames && state.dropsFrames)
    state.received(drops: 3, at: 62 * .second)
    #expect(!state.losesFrames && !state.dropsFrames && state.overruns == 1 && state.drops == 3)
  }

  @Test(arguments: [CarModel.eGMP, .petrol, .petrol29]) func `a car is polled through a socket, one frame in each write`(_ model: CarModel)
  {
    var rig = SocketRig(model.car())
    rig.run(for: 20 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.text("adapter") == "SocketCAN")
    #expect(rig.number("rpm") != nil && rig.number("speed") != nil && rig.number("poll-rate").map { $0 > 19 } ?? false)
    #expect(rig.sends.allSatisfy { $0.count == SocketCAN.frameLength })
    #expect(rig.filters.count == 1, "the responses of a car need no further filters")
  }

  @Test func `a request to an ECU with another response identifier extends the filter`() {
    var rig = SocketRig(ElectricCar(.eGMP))
    rig.run(for: 5 * .second)
    let id = rig.run("query", ["request": .string("22F190"), "header": .string("123")])
    rig.run(for: 2 * .second)
    #expect(rig.outcome(id) != nil)
    #expect(rig.filters.last?.contains { $0.matches(CANIdentifier(0x12B)) } == true && rig.filters.first?.count == 2)
  }

  @Test(arguments: ["lost-frame:5", "wrong-sequence:5", "nrc-78:5", "babble", "bus-off:200", "no-broadcasts"])
  func `a car with faults on its bus is polled`(_ fault: String) throws {
    var rig = SocketRig(ElectricCar(.eGMP), faults: [try CANFault(fault)])
    rig.run(for: 60 * .second)
    #expect((rig.number("polls") ?? 0) > 100 && rig.number("rpm") != nil, "\(rig.status) \(rig.fault ?? "")")
  }

  /// The frames that the ECUs answer to a request of a record, and the time of the last one. `rejecting`: whether the interface rejects a
  /// frame at this time, after this number of frames.
  private func response(rejecting: (Instant, Int) -> Bool) -> (frames: [CANFrame], end: Instant) {
    var node = ECUNode(car: ElectricCar(.eGMP), isInstant: true)
    var (frames, now, end): ([CANFrame], Instant, Instant) = ([], 0, 0)
    var inputs: [Input] = [.started(restored: [:], wall: WallTime(microseconds: 0)), .linkChanged(.main, .up(maximumSend: nil))]
    inputs += ["7E4#0322010100000000", "7E4#3000000000000000"].map { .received(.main, SocketCAN.bytes(of: CANFrame($0))) }
    while now < 3 * .second {
      var effects = Effects()
      node.handle(inputs.isEmpty ? .wake : inputs.removeFirst(), at: now, &effects)
      for effect in effects.list {
        guard case .send(_, let bytes, let id?, _) = effect else { continue }
        let isRejected = rejecting(now, frames.count)
        if !isRejected {
          SocketCAN.decode(bytes) { frames.append($0) }
          end = now
        }
        inputs.append(.sent(id, failure: isRejected ? "connection closed" : nil))
      }
      if inputs.isEmpty { now = max(now + .microsecond, node.nextWake ?? .max) }
    }
    return (frames, end)
  }

  @Test func `ECUs send the frames later that a full queue rejects, and discard them after a second`() {
    let all = response { _, _ in false }.frames
    #expect(all.count == 9)
    // A queue of one frame, which is sent after a millisecond.
    var free: Instant = 0
    let slow = response { now, _ in
      defer { if now >= free { free = now + .millisecond } }
      return now < free
    }
    #expect(slow.frames == all && slow.end < 30 * .millisecond)
    // The first frame passes, and no other for half a second, or for two.
    #expect(response { $1 == 1 && $0 < 500 * .millisecond }.frames == all)
    #expect(response { $1 == 1 && $0 < 2 * .second }.frames == [all[0]])
  }

  @Test func `bus-off is a fault, and polling resumes`() {
    var rig = SocketRig(ElectricCar(.eGMP))
    rig.run(for: 5 * .second)
    rig.deliverError(0x40)
    #expect(rig.status == "degraded" && rig.fault?.hasPrefix("the CAN interface is bus-off") == true)
    rig.run(for: 15 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test func `missing acknowledgement is a sleeping car, and errors of the bus are a fault`() {
    for (classes, status) in [(0x20, "car-silent"), (0x88, "degraded")] as [(UInt32, String)] {
      var rig = SocketRig(PetrolCar(.can11, Ignition([.init(.run, at: 0), .init(.off, at: 0)])))
      for _ in 0..<200 {
        rig.run(for: 50 * .millisecond)
        rig.deliverError(classes)
      }
      #expect(rig.status == status, "\(rig.status) \(rig.fault ?? "")")
    }
  }
}
