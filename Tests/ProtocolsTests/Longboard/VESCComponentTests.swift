import Testing

@testable import Protocols

/// The components of the machine, each alone.
@Suite struct VESCComponentTests {
  private static func options() throws -> VESCOptions {
    try VESCOptions(VESCRig.setup(["allow-motion": .bool(true), "max-duty-cycle": .float(50)], modes: VESCRig.modes))
  }

  private static func queue() throws -> VESCCommandQueue {
    let options = try options()
    return VESCCommandQueue(options, VESCProperty.properties(options, period: 50 * .millisecond), timeout: VESCSession.timeout)
  }

  private static func publisher() throws -> VESCPublisher {
    VESCPublisher(Schema(properties: VESCProperty.properties(try options(), period: 50 * .millisecond), actions: []))
  }

  private static func limits(_ current: Float = 1, erpm: Float = 100_000) throws -> VESCLimits {
    let numbers: [Float] = [1, current, -erpm, erpm, 0.005, 0.95, -1500, 1500, -20, 40]
    let bytes = numbers.flatMap(VESCCommand.bytes)
    var cursor = VESCCursor(bytes[...])
    return try #require(VESCLimits(&cursor))
  }

  // MARK: VESCPublisher

  @Test func `an absence is published once, and again after a new link`() throws {
    var publisher = try Self.publisher()
    var effects = Effects()
    publisher.withdraw(.speed, "off", &effects)
    publisher.withdraw(.speed, "off", &effects)
    #expect(effects.readings.count == 1)
    publisher.forgetReasons()
    publisher.withdraw(.speed, "off", &effects)
    #expect(effects.readings.count == 2)
    publisher.publish(.battery, .float(101), &effects)
    #expect(effects.readings.last?.content == .absent("implausible value from the VESC"))
  }

  // MARK: VESCSession

  @Test func `after five consecutive timeouts the VESC is silent`() throws {
    var session = VESCSession(try Self.options())
    var effects = Effects()
    #expect(session.unavailability == "the link is not up yet")
    session.linkCameUp()
    #expect(session.unavailability == "the VESC has not responded yet")
    for count in 1...5 {
      session.sendRequest(.values, at: 0, &effects)
      #expect(session.requestTimedOut(.values) == (count == 5))
    }
    let reason = session.vescStoppedResponding(at: 0)
    #expect(session.problem == reason && session.unavailability == reason)
    session.sendRequest(.firmware, at: 0, &effects)
    #expect(session.responseReceived() && session.isEstablished && session.problem == nil)
    session.sendRequest(.values, at: 0, &effects)
    #expect(!session.requestTimedOut(.values) && !session.responseReceived())
  }

  @Test func `the reason of a link reset is kept until the link is up again`() throws {
    var session = VESCSession(try Self.options())
    session.linkCameUp()
    session.giveUp("write timeout")
    session.linkWentDown("closed")
    #expect(session.problem == "write timeout" && !session.isUp)
    session.linkCameUp()
    #expect(session.problem == nil && session.isUp)
  }

  @Test func `only the write in flight ends`() throws {
    var session = VESCSession(try Self.options())
    var effects = Effects()
    session.linkCameUp()
    session.send([1], .stop, at: 7, &effects)
    let id = try #require(session.write?.id)
    #expect(session.endWrite(id &+ 1) == nil && session.writeDeadline == 7 + 5 * .second)
    #expect(session.endWrite(id) == .stop && session.write == nil)
  }

  // MARK: VESCPollScheduler

  @Test func `a request with two timeouts is unsupported once another one gets a response`() throws {
    var polling = VESCPollScheduler(rate: 20, phase: 0)
    var publisher = try Self.publisher()
    var effects = Effects()
    polling.linkCameUp(at: 0)
    #expect(polling.next(at: 0).command == .firmware)
    polling.received(try #require(VESCFirmware([3, 33])))
    #expect(polling.next(at: 0).command == .setupValues)
    for _ in 0..<2 { polling.timedOut(.setupValues, noise: 0, at: 0, &publisher, &effects) }
    #expect(polling.setupSupport == .unknown(timeouts: 2) && !polling.lacksSetupValues)
    #expect(polling.next(at: 0).command == .values, "one that every firmware supports")
    let request = VESCSession.Request(command: .values, sent: 0, deadline: 1, lateness: nil)
    polling.responded(to: request, isFirst: false, noise: 0, at: 0, &publisher, &effects)
    #expect(polling.lacksSetupValues && polling.selectedSetupSupport == .unknown(timeouts: 0))
    polling.forgetFirmware()
    #expect(!polling.lacksSetupValues)
    // Firmware that supports the request loses responses.
    polling.received(try #require(VESCFirmware([6, 0])))
    for _ in 0..<9 {
      polling.timedOut(.setupValues, noise: 0, at: 0, &publisher, &effects)
      polling.responded(to: request, isFirst: false, noise: 0, at: 0, &publisher, &effects)
    }
    #expect(!polling.lacksSetupValues)
  }

  // MARK: VESCMotion

  @Test func `the end of a lease fails waiting commands and sends three stops`() throws {
    var motion = VESCMotion(try Self.options())
    var publisher = try Self.publisher()
    var effects = Effects()
    motion.beginLease(deadline: 300 * .millisecond, refusal: nil, at: 0, &publisher, &effects)
    motion.setTarget(.targetCurrent, .float(5), for: 1, at: 0, &effects)
    #expect(motion.nextFrame(at: 0) == VESCSetPoint.current(5000).frame(canID: nil))
    motion.setTarget(.targetCurrent, .float(6), for: 2, at: 1, &effects)
    motion.endLease("done", at: 2, &publisher, &effects)
    #expect(effects.list == [1, 2].map { .complete($0, .failure(.refused(code: .leaseLost, "done"))) })
    for stop in 1...3 {
      #expect(motion.nextDue != nil && motion.nextFrame(at: 3) == VESCSetPoint.none.frame(canID: nil), "stop \(stop)")
      motion.stopSent(at: 3)
    }
    #expect(motion.nextDue == nil && !motion.isStopping)
    // Not confirmed by a response, so it is repeated on the next link.
    motion.linkWentDown("gone", at: 4, &publisher, &effects)
    #expect(motion.isStopping)
  }

  @Test func `a confirmed stop is not repeated on the next link`() throws {
    var motion = VESCMotion(try Self.options())
    var publisher = try Self.publisher()
    var effects = Effects()
    motion.beginLease(deadline: 300 * .millisecond, refusal: nil, at: 0, &publisher, &effects)
    motion.expire(at: 300 * .millisecond, &publisher, &effects)
    #expect(effects.list == [.leaseLost("no setpoint for 300 ms")])
    for _ in 0..<3 {
      _ = motion.nextFrame(at: .second)
      motion.stopSent(at: .second)
    }
    motion.responseReceived(toRequestAt: .second)
    motion.linkWentDown("gone", at: 2 * .second, &publisher, &effects)
    #expect(!motion.isStopping)
  }

  // MARK: VESCModeChange

  @Test func `a mode is active once the VESC reports its limits`() throws {
    let mode = try #require(try Self.options().modes.last)
    var change = VESCModeChange(mode.name, commandID: 1)
    let own = try Self.limits()
    let reduced = try Self.limits(0.9)
    #expect(change.request(needsCount: true) == .setupValues && change.request(needsCount: false) == .limits)
    let storedLimits = VESCStoredLimits(own: own, applied: reduced)
    #expect(change.limitsReceived(own, mode: mode, storedLimits: nil, VESCDrivetrain()) == .storeLimits(storedLimits))
    #expect(change.request(needsCount: false) == nil && change.limitsStored(nil) == .none)
    #expect(change.target == reduced && change.request(needsCount: false) == .setLimits)
    change.writeAcknowledged()
    #expect(change.request(needsCount: false) == .limits && change.hasWritten)
    #expect(change.limitsReceived(reduced, mode: mode, storedLimits: storedLimits, VESCDrivetrain()) == .activated(reduced, own: nil))
  }

  @Test func `no limits are written if the VESC's own limits cannot be stored`() throws {
    var change = VESCModeChange("sport", commandID: 1)
    let mode = try #require(try Self.options().modes.last)
    _ = change.limitsReceived(try Self.limits(), mode: mode, storedLimits: nil, VESCDrivetrain())
    let error = CommandError.refused(code: .notStored, "cannot store the VESC's own limits: no space")
    #expect(change.limitsStored("no space") == .failed(error) && change.target == nil && !change.hasWritten)
  }

  @Test func `a mode change fails if the VESC reports other limits than written`() throws {
    var change = VESCModeChange("sport", commandID: 1)
    let mode = try #require(try Self.options().modes.last)
    let own = try Self.limits()
    _ = change.limitsReceived(own, mode: mode, storedLimits: nil, VESCDrivetrain())
    _ = change.limitsStored(nil)
    change.writeAcknowledged()
    let error = CommandError.refused(code: .rejected, "the VESC reports limits other than those set")
    #expect(change.limitsReceived(own, mode: mode, storedLimits: nil, VESCDrivetrain()) == .failed(error))
  }

  @Test func `the consequence of two timeouts depends on the request`() throws {
    let timeout = VESCSession.timeout
    var change = VESCModeChange("sport", commandID: 1)
    #expect(change.timedOut(.setupValues, timeout: timeout) == .none && change.timedOut(.setupValues, timeout: timeout) == .assumeOneVESC)
    #expect(change.timedOut(.limits, timeout: timeout) == .none)
    guard case .failed(.refused(.notSupported, _)) = change.timedOut(.limits, timeout: timeout) else {
      Issue.record("limits that are never reported are not supported")
      return
    }
    let mode = try #require(try Self.options().modes.last)
    _ = change.limitsReceived(try Self.limits(), mode: mode, storedLimits: nil, VESCDrivetrain())
    _ = change.limitsStored(nil)
    #expect(change.timedOut(.setLimits, timeout: timeout) == .none && change.timedOut(.setLimits, timeout: timeout) == .none)
    #expect(change.request(needsCount: false) == .limits, "a lost acknowledgement is verified")
    #expect(change.timedOut(.limits, timeout: timeout) == .none)
    #expect(change.timedOut(.limits, timeout: timeout) == .failed(.timeout(milliseconds: 400)))
  }

  // MARK: VESCCommandQueue

  @Test func `commands are executed in order, and the queue is bounded`() throws {
    var queue = try Self.queue()
    var publisher = try Self.publisher()
    var effects = Effects()
    queue.scan(for: 1, &effects)
    queue.setMode(.string("eco"), for: 2, isReachable: true, &publisher, &effects)
    for id in 3...17 { queue.scan(for: CommandID(id), &effects) }
    #expect(queue.count == VESCCommandQueue.limit)
    let busy = CommandError.refused(code: .busy, "too many queued commands: try again later")
    #expect(effects.list == [.complete(17, .failure(busy))])
    #expect(queue.nextRequest(lacksSetupValues: true, at: 0) == .pingCAN && queue.progressDue(.pingCAN) == .second)
    effects.removeAll()
    queue.scanResultReceived([2], &effects)
    #expect(effects.list == [.complete(1, .success(Report(columns: ["can-id"], rows: [["2"]])))])
    #expect(queue.nextRequest(lacksSetupValues: true, at: 0) == .limits)
    effects.removeAll()
    queue.linkWentDown("gone", &effects)
    #expect(effects.list.count == 15 && queue.count == 0 && !queue.hasRequest)
  }

  @Test func `a mode command completes when the mode is stored`() throws {
    var queue = try Self.queue()
    var publisher = try Self.publisher()
    var effects = Effects()
    queue.setMode(.string("eco"), for: 1, isReachable: false, &publisher, &effects)
    queue.setMode(.string("full"), for: 2, isReachable: false, &publisher, &effects)
    #expect(effects.list == [.store(key: "mode", Array("eco".utf8)), .store(key: "mode", Array("full".utf8))])
    effects.removeAll()
    queue.stored("mode", nil, &publisher, &effects)
    #expect(effects.list == [.complete(1, .success(Report(text: "pending: set when the VESC responds")))])
    effects.removeAll()
    queue.stored("mode", "no space", &publisher, &effects)
    #expect(effects.list == [.complete(2, .failure(.refused(code: .notStored, "cannot store the mode: no space")))])
  }

  @Test func `a cancelled scan is not sent`() throws {
    var queue = try Self.queue()
    var effects = Effects()
    queue.scan(for: 1, &effects)
    queue.cancel(1)
    #expect(queue.nextRequest(lacksSetupValues: true, at: 0) == nil && queue.count == 0 && effects.isEmpty)
  }

  // MARK: VESCOdometer

  @Test func `the distance is published once it is stored`() throws {
    var odometer = VESCOdometer()
    var publisher = try Self.publisher()
    var effects = Effects()
    odometer.restore(["odometer": Array("1200 -".utf8)], &publisher, &effects)
    #expect(effects.readings.last?.content == .value(.float(1.2)) && odometer.total == 1200)
    effects.removeAll()
    var values = VESCValues()
    values[.distanceTravelled] = 5_000_000
    let drivetrain = VESCDrivetrain()
    #expect(!odometer.read(values, drivetrain, lacksSetupValues: false, at: 0, &publisher, &effects))
    values[.distanceTravelled] = 5_100_000
    #expect(!odometer.read(values, drivetrain, lacksSetupValues: false, at: 10 * .second, &publisher, &effects))
    #expect(odometer.total == 1300)
    let total = VESCProperty.totalDistance.rawValue
    #expect(!effects.readings.contains { $0.property == total })
    odometer.stored("odometer", nil, &publisher, &effects)
    #expect(effects.readings.last?.property == total && effects.readings.last?.content == .value(.float(1.3)))
  }

  @Test func `a decreasing counter is a restart of the VESC`() throws {
    var odometer = VESCOdometer()
    var publisher = try Self.publisher()
    var effects = Effects()
    var values = VESCValues()
    values[.uptime] = 5000
    #expect(!odometer.read(values, VESCDrivetrain(), lacksSetupValues: false, at: 0, &publisher, &effects))
    values[.uptime] = 100
    #expect(odometer.read(values, VESCDrivetrain(), lacksSetupValues: false, at: 1, &publisher, &effects))
    odometer.forgetCounters()
    values[.uptime] = 50
    #expect(!odometer.read(values, VESCDrivetrain(), lacksSetupValues: false, at: 2, &publisher, &effects))
  }
}
