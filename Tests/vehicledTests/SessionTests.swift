// The effects of one client on others: large calls, many calls, incomplete calls, and none.

import CLinux
import Glibc
import Protocols
import Testing
import Varlink

@testable import vehicled

@Suite("Session") @Loop struct SessionTests {
  private static let info = #"{"method":"org.varlink.service.GetInfo"}"#
  private static let status = #"{"method":"io.vehicled.Status"}"#
  private static let stranger: UInt32 = 4711

  private func methods(
    _ control: Configuration.Control = Configuration.Control(lists: .init(observe: [], control: [])),
    nameService: NameService = NameService()
  ) -> Methods {
    Methods(hub: DeviceHub(), access: Access(control), blueZ: BlueZ(SystemBus()), directory: "/tmp", nameService: nameService)
  }

  /// A call of this size in bytes.
  private func call(of size: Int) -> String {
    let frame = #"{"method":"io.vehicled.Get","parameters":{"references":[""]}}"#
    return frame.replacing("[\"\"]", with: "[\"\(String(repeating: "x", count: size - frame.utf8.count))\"]")
  }

  @Test func `calls of more than 16 KiB require the observe right, and are otherwise rejected with the reason`() async throws {
    let methods = methods(.init(lists: .init(observeUsers: ["4712"])))
    let stranger = try SocketClient(methods, user: Self.stranger)
    #expect(await stranger.ask(call(of: 16 << 10)).contains("PermissionDenied"))
    let refusal = await stranger.ask(call(of: 16 << 10 | 1))
    #expect(refusal.contains("PermissionDenied") && refusal.contains("more than 16 KiB") && refusal.contains("observe"), "\(refusal)")
    #expect(await until { stranger.isClosed })
    for user in [4712, geteuid()] {
      let client = try SocketClient(methods, user: user)
      var rest = (Array(call(of: 64 << 10).utf8) + [0])[...]
      #expect(
        await until {
          while case let sent = client.send(rest), sent > 0 { rest = rest.dropFirst(sent) }
          return rest.isEmpty
        })
      #expect(await client.next().contains("NoSuchProperty"))
    }
  }

  @Test func `rights are checked before parameters`() async throws {
    let stranger = try SocketClient(methods(), user: Self.stranger)
    let reply = await stranger.ask(#"{"method":"io.vehicled.Set","parameters":{"device":3,"nonsense":{}}}"#)
    #expect(reply.contains("PermissionDenied") && !reply.contains("nonsense"), "\(reply)")
  }

  /// Previously it was closed once more than 1 MiB was pending.
  @Test func `a client that sends calls faster than they are answered is throttled`() async throws {
    let client = try SocketClient(methods())
    let count = 1500
    let call = Array(Self.info.utf8) + [UInt8](repeating: 32, count: 1 << 10) + [0]
    var rest = [[UInt8]](repeating: call, count: count).flatMap { $0 }[...]
    // It reads nothing until its output is full.
    while true {
      let left = rest.count
      while case let sent = client.send(rest), sent > 0 { rest = rest.dropFirst(sent) }
      await Timer.pause(20 * .millisecond)
      if rest.count == left { break }
    }
    #expect(rest.count > 1 << 19)
    var answers = 0
    #expect(
      await until {
        while case let sent = client.send(rest), sent > 0 { rest = rest.dropFirst(sent) }
        let more = client.messages()
        answers += more
        return answers == count
      }, "\(answers)")
  }

  @Test func `many connections of one user do not delay another user`() async throws {
    let methods = methods()
    // Both users have the same rights: this tests the order of calls, not the connection limits.
    let flood = try (0..<16).map { _ in try SocketClient(methods, user: Self.stranger) }
    let other = try SocketClient(methods, user: Self.stranger + 1)
    #expect(await other.ask(Self.status).contains("PermissionDenied"))
    let callsPerClient = 150
    for client in flood { client.send([[UInt8]](repeating: Array(Self.status.utf8) + [0], count: callsPerClient).flatMap { $0 }[...]) }
    let before = methods.calls
    other.send(Self.status)
    #expect(await until { other.messages() == 1 })
    #expect(methods.calls - before < flood.count * callsPerClient / 2, "\(methods.calls - before)")
    var answers = 0
    #expect(
      await until {
        answers += flood.reduce(0) { $0 + $1.messages() }
        return answers == flood.count * callsPerClient
      })
  }

  /// Answering all calls that waited for a lookup in one turn took 50 ms for 128 calls, once a second.
  @Test func `calls that waited for the same lookup are answered in separate turns`() async throws {
    let service = FakeNameService([.user("owner"): .number(Self.stranger)])
    service.hang(true)
    let nameService = NameService(resolve: service.resolve)
    let methods = methods(.init(lists: .init(observeUsers: ["owner"])), nameService: nameService)
    let clients = try (0..<8).map { _ in try SocketClient(methods, user: Self.stranger) }
    clients.forEach { $0.send(Self.status) }
    #expect(await until { methods.calls == clients.count })
    // Queued behind theirs, in the same turn.
    var answered: Int?
    nameService.find([.user("owner")]) { _ in answered = clients.reduce(0) { $0 + $1.messages() } }
    service.hang(false)
    #expect(await until { answered != nil })
    #expect(answered == 0)
    var answers = 0
    #expect(
      await until {
        answers += clients.reduce(0) { $0 + $1.messages() }
        return answers == clients.count
      })
  }

  /// With priority for every connection that ever carried a setpoint, 110 connections made another driver lose its lease.
  @Test func `at most two connections of a lease have priority`() async throws {
    let rig = await DrivingRig()
    let holder = try SocketClient(rig.methods)
    let lease = await rig.drive(holder)
    let drivers = try (0..<5).map { _ in try SocketClient(rig.methods) }
    for driver in drivers { #expect(await driver.ask(rig.set("1", lease)).contains("reading")) }
    func drivingCount() -> Int { rig.methods.admission.sessions.values.count(where: \.isDriving) }
    #expect(drivingCount() == 2)
    // The other connections still belong to the driver: the lease ends when any of them closes.
    drivers[4].disconnect()
    #expect(await until { rig.leases == ["lease", "lease ended: client disconnected"] })
    #expect(drivingCount() == 0)
    rig.end()
  }

  @Test func `a driver's disconnect is detected while its connection is not being read`() async throws {
    let rig = await DrivingRig()
    let (holder, driver) = (try SocketClient(rig.methods), try SocketClient(rig.methods))
    let lease = await rig.drive(holder)
    #expect(await driver.ask(rig.set("1", lease)).contains("reading"))
    // A slow command, and setpoints behind it that fill the socket.
    rig.probe.onInput { _, _, _ in }
    while driver.send(rig.set("2", lease)) {}
    await Timer.pause(20 * .millisecond)
    #expect(rig.leases == ["lease"])
    driver.disconnect()
    #expect(await until { rig.leases == ["lease", "lease ended: client disconnected"] })
    rig.end()
  }

  /// Nine users took all connections, and a user with a right got none.
  @Test func `users without a right leave connections for those with one, however many they are`() async throws {
    let service = FakeNameService([.user("owner"): .number(9000)])
    let nameService = NameService(resolve: service.resolve)
    let methods = methods(.init(lists: .init(observeUsers: ["owner"])), nameService: nameService)
    // As when the daemon starts.
    var isStarted = false
    nameService.find(methods.access.queries) { _ in isStarted = true }
    #expect(await until { isStarted })
    let guests = try (1..<40).flatMap { user in try (0..<20).map { _ in try SocketClient(methods, user: 8000 + user) } }
    let count = methods.admission.sessions.count
    #expect(count > 60 && count <= Admission.maxGuests && guests.count { $0.isClosed } == guests.count - count)
    let known = try (0..<60).map { _ in try SocketClient(methods, user: 9000) }
    #expect(known.allSatisfy { !$0.isClosed } && methods.admission.sessions.count == count + 60)
    #expect(await known[0].ask(Self.status).contains("devices"))
    // A name that can no longer be looked up takes no connection away.
    service.answers.withLock { $0 = [:] }
    nameService.invalidate()
    #expect(try !SocketClient(methods, user: 9000).isClosed)
    (guests + known).forEach { $0.disconnect() }
    #expect(await until { methods.admission.sessions.count <= 1 })
  }

  @Test func `connections of a user without a right that come too often are closed at once`() async throws {
    let methods = methods()
    for _ in 0..<500 { try SocketClient(methods, user: Self.stranger).disconnect() }
    #expect(methods.admission.isRateLimited(Self.stranger) && !methods.admission.isRateLimited(Self.stranger + 1))
    #expect(await until { methods.admission.sessions.isEmpty })
    // Another user, and the owner, are served.
    for user in [Self.stranger + 1, geteuid()] {
      #expect(try await SocketClient(methods, user: user).ask(Self.info).contains("vehicled"))
    }
  }

  @Test(arguments: [
    ("Watch", "minimumIntervalMilliseconds", ""), ("Scan", "seconds", ""), ("Drive", "deadlineMilliseconds", #","device":"board""#),
  ]) func `an integer out of range is an invalid parameter`(_ method: String, _ name: String, _ others: String) async throws {
    let rig = await DrivingRig()
    for number in [Int.min, -1, .max] {
      let call = #"{"method":"io.vehicled.\#(method)","parameters":{"\#(name)":\#(number)\#(others)},"more":true}"#
      let reply = try await SocketClient(rig.methods).ask(call)
      #expect(reply.contains("InvalidParameter") && reply.contains(name), "\(reply)")
    }
    rig.end()
  }

  @Test func `a client that shuts down its sending side gets what is unread, and must read it`() async throws {
    for reads in [true, false] {
      let methods = Methods(
        hub: DeviceHub(), access: Access(.init(lists: .init())), blueZ: BlueZ(SystemBus()), directory: "/tmp",
        admission: Admission(maxUnreadTime: reads ? 300 * .second : 300 * .millisecond))
      let client = try SocketClient(methods)
      // More than the kernel's buffer takes, and less than makes a client slow.
      let call = #"{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"io.vehicled"}}"#
      let count = 25
      client.send([[UInt8]](repeating: Array(call.utf8) + [0], count: count).flatMap { $0 }[...])
      client.halfClose()
      if reads {
        var answers = 0
        #expect(
          await until {
            answers += client.messages()
            return answers == count
          }, "\(answers)")
      }
      #expect(await until { methods.admission.sessions.isEmpty }, "\(reads)")
      client.disconnect()
    }
  }

  @Test func `oneway calls are executed after their client has disconnected`() async throws {
    let rig = await DrivingRig()
    let client = try SocketClient(rig.methods)
    let led = #"{"method":"io.vehicled.Set","parameters":{"device":"board","property":"led","value":{"int":7}},"oneway":true}"#
    for _ in 0..<200 { client.send(led) }
    client.disconnect()
    #expect(await until { rig.probe.inputTexts.count { $0 == "set 1 7" } == 200 })
    #expect(await until { rig.methods.admission.sessions.isEmpty })
    rig.end()
  }

  /// One test for all timeouts of 10 s.
  @Test func `incomplete calls time out after 10 s, idle clients only near the connection limit, and drivers never`() async throws {
    let user = Self.stranger
    // The driver's right stays cached; otherwise the 17th connection may be rejected.
    let rig = await DrivingRig(
      control: .init(lists: .init(controlUsers: ["\(user + 1)"])), nameService: NameService(maxAge: 3600 * .second))
    let half = try SocketClient(rig.methods)
    half.send(Array(#"{"method":"#.utf8)[...])
    let silent = try (0..<16).map { _ in try SocketClient(rig.methods, user: user) }
    let holder = try SocketClient(rig.methods, user: user + 1)
    let lease = await rig.drive(holder)
    let drivers = try (0..<16).map { _ in try SocketClient(rig.methods, user: user + 1) }
    #expect(!lease.isEmpty && rig.methods.admission.sessions.count == 34)
    for _ in 0..<105 {
      await Timer.pause(100 * .millisecond)
      #expect(!silent[0].isClosed)
    }
    #expect(half.isClosed)
    let late = try SocketClient(rig.methods, user: user)
    #expect(await late.ask(Self.info).contains("vehicled"))
    #expect(await until { silent.allSatisfy(\.isClosed) })
    for driver in try drivers + [SocketClient(rig.methods, user: user + 1)] { #expect(!driver.isClosed) }
    rig.end()
  }

  @Test func `a stopping daemon answers earlier calls and accepts no new ones`() async throws {
    let rig = await DrivingRig()
    let clients = try (0..<8).map { _ in try SocketClient(rig.methods) }
    #expect(await until { rig.methods.admission.sessions.count == 8 })
    let calls = [[UInt8]](repeating: Array(Self.info.utf8) + [0], count: 20).flatMap { $0 }[...]
    for client in clients { client.send(calls) }
    await rig.methods.finish(within: 5 * .second)
    for client in clients {
      #expect(!client.send(Self.info))
      #expect(client.messages() == 20)
      #expect(await until { client.isClosed })
    }
    rig.end()
  }
}

@Suite struct BacklogTests {
  private func bytes(_ count: Int) -> [UInt8] { [[UInt8]](repeating: Array(#"{"method":"a.B"}"#.utf8) + [0], count: count).flatMap { $0 } }

  @Test func `bytes in the kernel's buffer have the time at which reading was paused`() throws {
    var backlog = Backlog()
    backlog.append(bytes(1), at: 1 * .second)
    #expect(try backlog.next()?.arrived == 1 * .second)
    #expect(try backlog.next() == nil && backlog.pending == 0)
    backlog.markDelayed(bytes(2).count, since: 2 * .second)
    backlog.append(bytes(1), at: 9 * .second)
    backlog.append(bytes(2), at: 9 * .second)
    #expect(try backlog.next()?.arrived == 2 * .second)
    #expect(try backlog.next()?.arrived == 2 * .second)
    #expect(try backlog.next()?.arrived == 9 * .second)
  }

  @Test func `a call arrives with its last byte`() throws {
    var backlog = Backlog()
    let call = bytes(1)
    backlog.append(call[..<5], at: 1 * .second)
    #expect(try !backlog.hasCall())
    backlog.append(call[5...], at: 3 * .second)
    #expect(try backlog.hasCall())
    #expect(try backlog.next()?.arrived == 3 * .second)
  }

  @Test func `the size limit can be raised during a call`() throws {
    var backlog = Backlog()
    backlog.append([UInt8](repeating: 32, count: Backlog.unauthorizedLimit + 1), at: 0)
    #expect(throws: VarlinkFraming.TooLong.self) { try backlog.hasCall() }
    backlog.limit = VarlinkFraming.callLimit
    #expect(try !backlog.hasCall())
    backlog.append(bytes(1), at: 0)
    #expect(try backlog.next()?.call.method == "a.B")
  }
}
