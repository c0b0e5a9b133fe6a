import Testing

@testable import Protocols

/// The components of the car's machine, each alone, in virtual time.
@Suite struct CarComponentTests {
  private static let later = 10 * Nanoseconds.second

  private static func completions(_ effects: Effects) -> [CommandID] {
    effects.list.compactMap { if case .complete(let id, _) = $0 { id } else { nil } }
  }

  private static func code(_ effect: Effect?) -> String? {
    if case .complete(_, .failure(.refused(let code, _)))? = effect { code.rawValue } else { nil }
  }

  // MARK: Session

  @Test func `a session without a first message becomes silent until a message arrives`() {
    var session = CarSession()
    var effects = Effects()
    #expect(!session.isUp && session.unavailability == "the link is not up yet" && session.deadline == nil)
    session.linkUp(at: 0, &effects)
    #expect(session.expire(at: 5 * .second - 1, &effects) == .nothing && session.deadline == 5 * .second)
    #expect(session.expire(at: 5 * .second, &effects) == .greeting && session.state == .silent && session.deadline == nil)
    #expect(session.messageReceived(&effects) && session.isReady && session.unavailability == nil)
    let beginsAgain = session.messageReceived(&effects)
    #expect(!beginsAgain, "only the first message begins the session")
    #expect(effects.readings.map(\.content) == [.value(.bool(false)), .value(.bool(false)), .value(.bool(true))])
  }

  @Test func `the shutdown sequence has a timeout, and messages do not end it`() {
    var session = CarSession()
    var effects = Effects()
    session.linkUp(at: 0, &effects)
    session.beginShutdown(at: 0)
    #expect(!session.messageReceived(&effects) && session.isClosing)
    #expect(session.expire(at: 1_200 * .millisecond, &effects) == .closing)
    session.linkDown("closed")
    #expect(session.unavailability == "closed" && session.expire(at: Self.later, &effects) == .nothing)
  }

  // MARK: Writes and the send queue

  @Test func `a write ends only with its own ID, and is overdue after a second`() {
    var write = CarWrite()
    let id = write.begin(.stop(.stop), at: 0)
    #expect(!write.isIdle && write.end(id &+ 1) == nil && write.isInFlight(id))
    #expect(!write.isOverdue(at: .second - 1) && write.isOverdue(at: .second) && write.deadline == .second)
    #expect(write.end(id) == .stop(.stop) && write.isIdle && write.end(id) == nil)
    #expect(write.begin(.disconnect, at: 0) != id)
  }

  @Test func `Stop does not wait for a command in flight, and is counted once`() {
    var queue = CarSendQueue()
    #expect(queue.add(CarQueuedCommand(.status, [.status], for: 1)) && queue.startSendingCommand() == .status)
    queue.messageSent(isStop: false, at: 0)
    queue.stop([.stop, .modes], at: 10)
    #expect(queue.stopDue == 10 && queue.startSendingStop() == .stop)
    queue.stopWriteEnded(nil, at: 20)
    #expect(queue.stops == [.modes])
    // A second stop while the message is in flight starts over.
    #expect(queue.startSendingStop() == .modes)
    queue.stop([.stop], at: 30)
    queue.stopWriteEnded(nil, at: 40)
    #expect(queue.stops == [.stop])
    #expect(queue.commandAccepted()?.id == 1 && queue.commandAccepted() == nil)
  }

  @Test func `a request is queued before all commands except the one in flight`() {
    var queue = CarSendQueue()
    _ = queue.add(CarQueuedCommand(.mode(1), [.chosenMode(1)], for: 1))
    _ = queue.startSendingCommand()
    queue.addFirst(CarQueuedCommand(.greeting, [.modes]))
    #expect(queue.commands.map(\.purpose) == [.mode(1), .greeting])
    #expect(queue.commandAccepted()?.purpose == .mode(1))
    queue.addFirst(CarQueuedCommand(.proceed, [.proceed]))
    #expect(queue.isContinueNext && queue.contains(.greeting) && !queue.contains(.status))
  }

  // MARK: Standstill

  @Test func `that the car was driven is stored until it confirms Stop`() {
    var standstill = CarStandstill()
    var effects = Effects()
    #expect(!standstill.needsStop && standstill.fault == nil)
    standstill.continueSent(&effects)
    standstill.continueSent(&effects)
    #expect(effects.list == [.store(key: "driven", [0x31])] && standstill.needsStop)
    standstill.carDidNotRespond()
    #expect(standstill.fault == CarStandstill.drivenMessage && standstill.uncertainty(.down("x")) == CarStandstill.unconfirmed)
    var next = CarStandstill()
    next.restore(["driven": [0x31]])
    #expect(next.needsStop && next.fault == CarStandstill.drivenMessage)
    effects.removeAll()
    standstill.stopConfirmed(&effects)
    #expect(effects.list == [.store(key: "driven", [])] && standstill.uncertainty(.ready) == nil && standstill.refusal("x") == "x")
    standstill.linkUp()
    #expect(!standstill.isConfirmed, "another client may have driven it since")
  }

  @Test func `a stop command waits two seconds for the confirmation`() {
    var standstill = CarStandstill()
    var effects = Effects()
    let areWaiting = (1...17).map { standstill.wait(for: $0, at: 0) }
    #expect(areWaiting == Array(repeating: true, count: 16) + [false] && standstill.deadline == 2 * .second)
    standstill.cancel(1)
    standstill.expire(at: 2 * .second - 1, &effects)
    #expect(effects.isEmpty)
    standstill.expire(at: 2 * .second, &effects)
    #expect(Self.completions(effects) == Array(2...16) && Self.code(effects.list.first) == "not-confirmed" && standstill.deadline == nil)
  }

  @Test func `a Stop that was not sent is sent first over the next link`() {
    var standstill = CarStandstill()
    standstill.linkLost(hasStops: true)
    standstill.linkLost(hasStops: false)
    #expect(standstill.needsStop)
    standstill.stopSent()
    #expect(!standstill.needsStop)
  }

  // MARK: Liveness, last will, keep-alive

  @Test func `a car that never reported its modes does not count as hung`() {
    var liveness = CarLivenessCheck()
    liveness.restart(at: 0)
    liveness.requestSent(at: 1)
    #expect(liveness.due == nil && liveness.deadline == nil)
    liveness.responseReceived()
    #expect(liveness.due == 1 + .second && liveness.deadline == nil)
    liveness.requestSent(at: 2)
    liveness.requestSent(at: 3)
    #expect(liveness.due == nil && liveness.deadline == 2 + 1_500 * .millisecond, "the first missing response counts")
  }

  @Test func `the last-will frames suit the current and all queued modes, and are set once`() {
    func frames(_ mode: Int?, _ queued: [Int], _ will: inout CarLastWill) -> [[UInt8]]? {
      var effects = Effects()
      will.renew(mode: mode, queued.map { CarQueuedCommand(.mode($0), [.chosenMode($0)]) }, &effects)
      guard case .lastWill(.main, let frames?)? = effects.list.first else { return nil }
      return frames.frozen.map(\.bytes)
    }
    var will = CarLastWill(.asBuilt)
    let stop = CarOutboundMessage.stop.frame(.asBuilt)
    #expect(frames(0, [], &will) == [stop, stop, stop])
    #expect(frames(1, [], &will) == nil)
    #expect(frames(0, [5], &will) == [[UInt8]](repeating: stop, count: 7))
    #expect(frames(5, [3, 1], &will) == [stop, CarOutboundMessage.chosenMode(0).frame(.asBuilt), stop, stop])
    will.reset()
    #expect(frames(3, [], &will)?.count == 4)
  }

  @Test func `keep-alives are sent at a limited interval until they are disabled`() {
    var test = CarConnectionTest()
    #expect(test.due == nil)
    test.setInterval(seconds: 0.001, at: 5)
    #expect(test.due == 5)
    test.messageQueued(at: 5)
    #expect(test.due == 5 + 100 * .millisecond)
    test.setInterval(seconds: nil, at: 6)
    #expect(test.due == nil)
  }

  // MARK: Reader, condition

  @Test func `the reader returns the last message of each type and counts all`() {
    var reader = CarReader()
    var effects = Effects()
    var bytes = Array("Modes#$#a%^%Message#$#one%^%Modes#$#b%^%Gyro#$#0.1%^%Message#$#two%^%Nothing#$#%^%junk%^%".utf8)[...]
    var reports: [CarReport] = []
    while let report = reader.next(&bytes, at: 0, &effects) { reports.append(report) }
    #expect(reports == [.other, .other, .other, .tiltInterval(100 * .millisecond), .other])
    let latest = reader.finish(&effects)
    #expect(latest.modes == Array("b".utf8) && latest.modesCount == 2 && latest.text == "two" && latest.hasTilt && !latest.hasButtons)
    let values = effects.readings.map(\.content)
    #expect(values == [.value(.string("two")), .value(.int(5)), .value(.int(1))])
    #expect(reader.finish(&effects).modes == nil && effects.readings.count == 3, "nothing is published twice")
  }

  // MARK: Mode descriptions

  @Test func `after a timeout the next description is requested only when a late one cannot be mistaken for it`() {
    var (modes, query, effects) = (CarModes(.asBuilt, device: "rover"), CarModeQuery(.asBuilt), Effects())
    _ = modes.received(Array("a;b".utf8), &effects)
    query.add(.string("b"), modes, for: 1, &effects)
    #expect(query.advance(modes, &effects) == 1)
    query.requestSent(1, at: 0)
    #expect(query.advance(modes, &effects) == nil)
    query.expire(at: 2 * .second, &effects)
    #expect(Self.completions(effects) == [1])
    query.add(.string("a"), modes, for: 2, &effects)
    #expect(query.advance(modes, &effects) == nil && !query.received(Array("late".utf8), modes, &effects))
    query.expire(at: 4 * .second, &effects)
    #expect(query.advance(modes, &effects) == 0)
    query.requestSent(0, at: 4 * .second)
    #expect(query.received(Array("text".utf8), modes, &effects) && query.advance(modes, &effects) == nil)
    #expect(effects.list.last == .complete(2, .success(Report(text: "text"))))
  }

  // MARK: Motion, sender

  private static func context(_ session: CarSession, mode: Int? = 0) -> CarContext {
    CarContext(session: session, mode: mode, isCameraBlocking: false, statusDeadline: nil)
  }

  /// A session that is ready, and motion that has sent its Stop and its greeting.
  private static func ready(_ dialect: CarDialect = .asBuilt) -> (motion: CarMotion, session: CarSession) {
    let options = CarOptions(Setup(options: ["dialect": .string(dialect.rawValue)]))
    var (motion, session, effects) = (CarMotion(options), CarSession(), Effects())
    session.linkUp(at: 0, &effects)
    motion.linkUp(context(session), at: 0, &effects)
    _ = session.messageReceived(&effects)
    motion.received(.tiltInterval(20 * .millisecond), context(session), at: 0, &effects)
    motion.sessionBegan(context(session), at: 0, &effects)
    _ = drain(&motion, session, from: 0)
    return (motion, session)
  }

  /// Sends all that is due in the next seconds over a link that accepts every write: the frames.
  private static func drain(_ motion: inout CarMotion, _ session: CarSession, from start: Instant, mode: Int? = 0) -> [String] {
    var frames: [String] = []
    for step in 0..<100 {
      var effects = Effects()
      let now = start + Int64(step) * 10 * .millisecond
      _ = motion.advance(context(session, mode: mode), at: now, &effects)
      for case .send(_, let bytes, let id?, _) in effects.list {
        frames.append(String(decoding: bytes.prefix { $0 != UInt8(ascii: "#") }, as: UTF8.self))
        _ = motion.sent(id, nil, context(session, mode: mode), at: now, &effects)
      }
    }
    return frames
  }

  @Test func `when a lease expires, Stop is sent before queued commands`() {
    let session = Self.ready().session
    var (motion, effects) = (Self.ready().motion, Effects())
    motion.beginLease(300 * .millisecond, refusal: nil, at: Self.later, &effects)
    motion.proceed(for: 1, &effects)
    motion.add(CarQueuedCommand(.message, [.message("x")], for: 2), &effects)
    #expect(motion.driving.isLeaseHeld && motion.nextWake(Self.context(session)) != nil)
    motion.expireLease(Self.context(session), at: Self.later + 300 * .millisecond, &effects)
    #expect(effects.list.contains(.leaseLost("no setpoint for 300 ms")) && Self.completions(effects) == [1])
    let frames = Self.drain(&motion, session, from: Self.later + 300 * .millisecond)
    #expect(frames.starts(with: ["Stop", "Stop", "Stop", "Modes", "Message"]) && !frames.contains("Continue"))
  }

  @Test func `in a mode in which Stop fails, the mode is changed between two Stops`() {
    let session = Self.ready().session
    var (motion, effects) = (Self.ready().motion, Effects())
    motion.stop(for: 1, Self.context(session, mode: 3), at: Self.later, &effects)
    let frames = Self.drain(&motion, session, from: Self.later, mode: 3)
    #expect(frames.prefix(5) == ["Stop", "ChosenMode", "Stop", "Stop", "Modes"])
  }

  /// As documented a mode change releases the pressed buttons first, and they can take the last places of the queue.
  @Test func `a mode change for which the queue has no room is rejected`() {
    let session = Self.ready(.documented).session
    var (motion, effects) = (Self.ready(.documented).motion, Effects())
    motion.beginLease(.second, refusal: nil, at: Self.later, &effects)
    for (id, side) in zip([1, 2] as [CommandID], CarSide.allCases) { motion.press(side, true, for: id, Self.context(session), &effects) }
    #expect(Self.drain(&motion, session, from: Self.later) == ["LeftButtonTouchDownn", "RightButtonTouchDownn"])
    for id in 3...17 { motion.add(CarQueuedCommand(.message, [.message("x")], for: CommandID(id)), &effects) }
    motion.chooseMode(1, for: 18, Self.context(session), at: 2 * Self.later, &effects)
    #expect(Self.completions(effects) == [18] && Self.code(effects.list.last) == "busy" && motion.sender.queue.commands.count == 17)
  }

  @Test func `a full queue rejects a command with a remedy`() {
    var sender = CarSender(.asBuilt)
    var effects = Effects()
    let areQueued = (1...17).map { sender.add(CarQueuedCommand(.message, [.message("x")], for: $0), &effects) }
    #expect(areQueued == Array(repeating: true, count: 16) + [false] && Self.code(effects.list.first) == "busy")
    sender.remove(.refused(code: .removed, ""), &effects) { $0 == .message }
    #expect(Self.completions(effects) == [17] + Array(1...16) && sender.queue.commands.isEmpty)
  }

  // MARK: Camera, settings

  @Test func `the camera has its own link, and is stuck after a timeout until the car responds`() {
    var (camera, effects) = (CarCamera(CarOptions(Setup(links: [.main: "tcp:car:12345"]))), Effects())
    #expect(camera.reply(isDriven: false) == nil && camera.isQuiet)
    camera.beginStart(for: 1, at: 0, &effects)
    #expect(camera.isStarting && !camera.isBlocking && camera.drivingRefusal != nil)
    camera.videoRequested(at: 0, &effects)
    #expect(camera.isBlocking && effects.list == [.openLink(.video, url: "tcp:car:12346")])
    #expect(camera.linkChanged(.up(maximumSend: nil), at: 1, &effects)?.starts(with: Array("GET /video_feed".utf8)) == true)
    #expect(camera.expire(at: 15 * .second, &effects) && camera.fault != nil && !camera.isBlocking)
    #expect(effects.list.suffix(2) == [.closeLink(.video), .complete(1, .failure(.timeout(milliseconds: 15_000)))])
    // A response can be older than the command that the car has not read. The next one is not.
    camera.modesReceived(at: 16 * .second, &effects)
    camera.modesReceived(at: 16 * .second, &effects)
    #expect(camera.fault != nil && camera.drivingRefusal != nil && camera.modesDue == 22 * .second)
    #expect(camera.reply(isDriven: false) == .failure(CarCamera.noPicture))
    camera.modesRequested(at: 22 * .second)
    camera.modesReceived(at: 23 * .second, &effects)
    #expect(camera.fault == nil && camera.drivingRefusal == nil && camera.isQuiet && camera.nextWake == nil && camera.modesDue == nil)
    #expect(camera.reply(isDriven: false) == nil)
  }

  @Test func `a car that waits for its picture is freed, even if it responded before it read the command`() {
    var (camera, effects) = (CarCamera(CarOptions(Setup(links: [.main: "tcp:car:12345"]))), Effects())
    camera.beginStart(for: 1, at: 0, &effects)
    camera.videoRequested(at: 0, &effects)
    _ = camera.expire(at: 15 * .second, &effects)
    camera.modesReceived(at: 16 * .second, &effects)
    camera.modesRequested(at: 22 * .second)
    #expect(camera.nextWake == 25 * .second && camera.modesDue == 52 * .second, "the request is repeated")
    effects = Effects()
    #expect(!camera.expire(at: 25 * .second, &effects) && effects.list == [.openLink(.video, url: "tcp:car:12346")])
    #expect(camera.linkChanged(.down("refused"), at: 26 * .second, &effects) == nil && camera.nextWake == 36 * .second)
    _ = camera.expire(at: 36 * .second, &effects)
    #expect(camera.linkChanged(.up(maximumSend: nil), at: 36 * .second, &effects) != nil)
    effects = Effects()
    #expect(camera.received(CarVideoTests.response, at: 37 * .second, &effects) == nil)
    #expect(effects.list == [.closeLink(.video)] && camera.fault != nil && camera.modesDue == 43 * .second)
    // It reads the earlier requests, but the camera can have been switched on more than once.
    camera.modesReceived(at: 37 * .second, &effects)
    #expect(camera.fault != nil)
    camera.modesRequested(at: 43 * .second)
    camera.modesReceived(at: 44 * .second, &effects)
    #expect(camera.fault == nil && camera.isQuiet && camera.nextWake == nil)
  }

  @Test func `a setting takes effect once it is stored`() {
    var (settings, effects) = (CarSettings(CarOptions(Setup())), Effects())
    #expect(settings.set(.sensitivity, .float(1.2), for: 1, isDriven: false, &effects) && settings.sensitivity == 1)
    settings.stored("sensitivity", "no space", &effects)
    #expect(settings.sensitivity == 1 && Self.code(effects.list.last) == "not-stored")
    _ = settings.set(.sensitivity, .float(1.2), for: 2, isDriven: false, &effects)
    settings.stored("sensitivity", nil, &effects)
    #expect(settings.sensitivity == 1.2 && effects.list.last == .complete(2, .success(Report())))
    _ = settings.set(.neutralRoll, .float(0.1), for: 3, isDriven: true, &effects)
    #expect(Self.code(effects.list.last) == "driving" && !settings.set(.video, .bool(true), for: 4, isDriven: false, &effects))
  }

  @Test func `a status request without a response blocks the next one for three seconds`() {
    var (status, effects) = (CarStatus(CarOptions(Setup())), Effects())
    #expect(status.due == nil && !status.join(1))
    status.sessionBegan(at: 0)
    #expect(status.due == .second)
    status.requestSent(for: 2, at: .second)
    #expect(status.due == nil && status.join(3) && !status.isOverdue(at: 4 * .second - 1) && status.isOverdue(at: 4 * .second))
    status.expire(&effects)
    #expect(Self.completions(effects) == [2, 3] && status.due == 31 * .second && !status.isUnanswered)
    status.requestSent(for: nil, at: 31 * .second)
    status.expire(&effects)
    #expect(status.isUnanswered)
    status.carResponded(&effects)
    #expect(!status.isUnanswered && effects.readings.map(\.content) == [.value(.bool(false)), .value(.bool(true))])
  }
}
