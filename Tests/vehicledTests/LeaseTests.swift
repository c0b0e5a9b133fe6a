// The motion lease: exclusive to one client, and every way in which it ends.

import CLinux
import Foundation
import Glibc
import NIOCore
import NIOPosix
import Protocols
import Synchronization
import Testing

@testable import vehicled

@Suite("Lease") @Loop struct LeaseTests {
  private typealias Client = SocketClient
  private typealias Rig = DrivingRig

  @Test func `only the holder of the lease moves the device`() async throws {
    let rig = await Rig()
    let (holder, driver, other) = (try Client(rig.methods), try Client(rig.methods), try Client(rig.methods))
    #expect(await driver.ask(rig.set("1", nil)).contains("LeaseRequired"))
    #expect(await driver.ask(rig.set("1", "made-up")).contains("LeaseLost"))
    #expect(await driver.ask(#"{"method":"io.vehicled.Call","parameters":{"device":"board","action":"jump"}}"#).contains("LeaseRequired"))
    let lease = await rig.drive(holder)
    #expect(rig.leases == ["lease"] && lease.count > 20)
    #expect(await driver.ask(rig.set("1.5", lease)).contains("reading"))
    #expect(await driver.ask(rig.set("11", lease)).contains("OutOfRange"))
    #expect(
      await driver.ask(#"{"method":"io.vehicled.Call","parameters":{"device":"board","action":"jump","lease":"\#(lease)"}}"#)
        == "{\"parameters\":{}}")
    #expect(rig.probe.inputTexts.contains("set 0 1.5") && rig.probe.inputTexts.contains("run 0"))
    // A property that does not move the device needs no lease.
    #expect(
      await other.ask(
        #"{"method":"io.vehicled.Set","parameters":{"device":"board","property":"led","value":{"int":7}}}"#
      ).contains("reading"))
    let busy = await other.ask(#"{"method":"io.vehicled.Drive","parameters":{"device":"board"},"more":true}"#)
    #expect(busy.contains("io.vehicled.Busy") && busy.contains("(pid \(getpid()))"), "\(busy)")
    #expect(rig.hub.states[0].wireDevice().holder?.hasSuffix("(pid \(getpid()))") == true)
    holder.disconnect()
    #expect(await until { rig.leases.count == 2 })
    #expect(rig.leases[1] == "lease ended: client disconnected" && rig.hub.states[0].wireDevice().holder == nil)
    #expect(await driver.ask(rig.set("1", lease)).contains("LeaseLost"))
    #expect(await rig.drive(other) != lease)
    rig.end()
  }

  @Test func `driving requires a guardian if the link has a last will`() async throws {
    let rig = await Rig(guardian: Guardian(program: "/nonexistent/vehicled"))
    let holder = try Client(rig.methods)
    // Without last-will frames no guardian is needed.
    #expect(await rig.drive(holder).count > 20)
    holder.disconnect()
    #expect(await until { rig.device.lease == nil })
    rig.device.ports[0].setLastWill(LastWill(dead: [LastWill.Message([1])], frozen: []))
    let reply = await rig.drive(try Client(rig.methods))
    #expect(reply.contains("no-guardian") && reply.contains("no guardian: cannot start it: no such file"), "\(reply)")
    rig.end()
  }

  @Test func `another user cannot use the lease`() async throws {
    let rig = await Rig(control: Configuration.Control(lists: .init(controlUsers: ["4711"])))
    let (holder, thief) = (try Client(rig.methods), try Client(rig.methods, user: 4711))
    let lease = await rig.drive(holder)
    #expect(await thief.ask(rig.set("1", lease)).contains("LeaseLost"))
    thief.disconnect()
    #expect(rig.device.lease != nil && rig.leases == ["lease"])
    holder.disconnect()
    rig.end()
  }

  @Test(arguments: ["disconnects", "half-closes"]) func `the lease ends with the connection that sends its setpoints`(_ how: String)
    async throws
  {
    let rig = await Rig()
    let (holder, driver) = (try Client(rig.methods), try Client(rig.methods))
    let lease = await rig.drive(holder)
    #expect(await driver.ask(rig.set("1", lease)).contains("reading"))
    if how == "disconnects" { driver.disconnect() } else { driver.halfClose() }
    #expect(await until { rig.leases == ["lease", "lease ended: client disconnected"] })
    holder.disconnect()
    rig.end()
  }

  @Test func `queued setpoints expire`() async throws {
    let rig = await Rig()
    let (holder, driver) = (try Client(rig.methods), try Client(rig.methods))
    let lease = await rig.drive(holder)
    // A slow link: commands complete up to 20 ms later.
    let waiting = Mutex([CommandID]())
    rig.probe.onInput { input, _, effects in
      switch input {
      case .perform(let id, _): waiting.withLock { $0.append(id) }
      case .received:
        for id in waiting.withLock({ ids in
          defer { ids = [] }
          return ids
        }) {
          effects.append(.complete(id, .success(Report())))
        }
      default: break
      }
    }
    let controller = rig.line.controller
    let beat = Timer { _ in write(controller, "x", 1) }
    func replies() async -> (good: Int, old: Int) {
      var (good, old) = (0, 0)
      while good + old < 100 {
        beat.set(Clock.monotonic() + 20 * .millisecond)
        let reply = await driver.next()
        if reply.contains("expired") { old += 1 } else if reply.contains("reading") { good += 1 } else { break }
      }
      return (good, old)
    }
    for _ in 0..<100 { driver.send(rig.set("1", lease)) }
    let (good, old) = await replies()
    // Stopped first: the descriptor may be reused once the line is closed.
    beat.set(nil)
    #expect(good > 0 && old > 50, "\(good) and \(old)")
    holder.disconnect()
    driver.disconnect()
    rig.end()
  }

  @Test func `the lease ends when its holder half-closes the connection`() async throws {
    let rig = await Rig()
    let holder = try Client(rig.methods)
    _ = await rig.drive(holder)
    holder.halfClose()
    #expect(await until { rig.leases == ["lease", "lease ended: client disconnected"] })
    // It can still read.
    let lost = await holder.next()
    #expect(lost.contains("io.vehicled.LeaseLost") && lost.contains("client closed its connection"), "\(lost)")
    #expect(await until { holder.isClosed })
    rig.end()
  }

  @Test func `a stream ends when its user loses the right`() async throws {
    let rig = await Rig(control: Configuration.Control(lists: .init(controlUsers: ["4711"])))
    let watcher = try Client(rig.methods, user: 4711)
    #expect(await watcher.ask(#"{"method":"io.vehicled.Watch","more":true}"#).contains("snapshot"))
    rig.methods.access = Access(Configuration.Control(lists: .init(controlUsers: ["4712"])))
    #expect(await watcher.next().contains("PermissionDenied"))
    #expect(await watcher.ask(#"{"method":"io.vehicled.Status"}"#).contains("PermissionDenied"))
    watcher.disconnect()
    rig.end()
  }

  @Test func `a reload that changes the access rules is answered under the old rules`() async throws {
    let rig = await Rig(control: Configuration.Control(lists: .init(controlUsers: ["4711"])))
    rig.methods.reload = {
      rig.methods.access = Access(Configuration.Control(lists: .init(controlUsers: ["4712"])))
      return .success(.init(changed: ["control"]))
    }
    let owner = try Client(rig.methods, user: 4711)
    #expect(await owner.ask(#"{"method":"io.vehicled.Reload"}"#).contains("\"changed\":[\"control\"]"))
    #expect(await owner.ask(#"{"method":"io.vehicled.Status"}"#).contains("PermissionDenied"))
    owner.disconnect()
    rig.end()
  }

  private static let owner = NameService.Query.user("owner")
  private static let status = #"{"method":"io.vehicled.Status"}"#

  @Test func `a user ID that is reassigned loses its rights`() async throws {
    let service = FakeNameService([Self.owner: .number(4711), .group("vehicled"): .absent])
    let control = Configuration.Control(lists: .init(controlUsers: ["owner"]))
    let rig = await Rig(control: control, nameService: NameService(resolve: service.resolve))
    let (watcher, caller, heir) = (
      try Client(rig.methods, user: 4711), try Client(rig.methods, user: 4711), try Client(rig.methods, user: 4712)
    )
    #expect(await watcher.ask(#"{"method":"io.vehicled.Watch","more":true}"#).contains("snapshot"))
    #expect(await heir.ask(Self.status).contains("PermissionDenied"))
    service.answers.withLock { $0[Self.owner] = .number(4712) }
    // Without a reload, any call notices it within a second and ends streams.
    var reply = ""
    for _ in 0..<1000 where !reply.contains("devices") { reply = await heir.ask(Self.status) }
    #expect(reply.contains("devices"))
    #expect(await caller.ask(Self.status).contains("PermissionDenied"))
    #expect(await watcher.next().contains("PermissionDenied"))
    service.answers.withLock { $0[Self.owner] = .number(4711) }
    rig.methods.recheckStreamsAfterNameChange()
    #expect(await caller.ask(Self.status).contains("devices"))
    #expect(await heir.ask(Self.status).contains("PermissionDenied"))
    [watcher, caller, heir].forEach { $0.disconnect() }
    rig.end()
  }

  @Test func `a hanging name service delays only clients that need a lookup`() async throws {
    let service = FakeNameService([Self.owner: .number(4711), .group("vehicled"): .absent, .userName(4711): .name("owner")])
    let nameService = NameService(timeout: 2 * .second, resolve: service.resolve)
    let rig = await Rig(control: Configuration.Control(lists: .init(controlUsers: ["owner"])), nameService: nameService)
    let (holder, driver, caller) = (
      try Client(rig.methods, user: 4711), try Client(rig.methods, user: 4711), try Client(rig.methods, user: 4711)
    )
    let root = try Client(rig.methods)
    let lease = await rig.drive(holder)
    #expect(await driver.ask(rig.set("1", lease)).contains("reading"))
    #expect(rig.device.lease?.holder == "owner (pid \(getpid()))")
    nameService.invalidate()
    service.hang(true)
    caller.send(Self.status)
    // A driver was authorized before, and root needs no lookup.
    #expect(await driver.ask(rig.set("1.5", lease)).contains("reading"))
    #expect(await root.ask(Self.status).contains("devices"))
    #expect(await caller.next().contains("the name service does not respond"))
    #expect(await driver.ask(rig.set("2", lease)).contains("reading") && rig.leases == ["lease"])
    service.hang(false)
    var reply = ""
    for _ in 0..<1000 where !reply.contains("devices") { reply = await caller.ask(Self.status) }
    #expect(reply.contains("devices"))
    [holder, driver, caller, root].forEach { $0.disconnect() }
    rig.end()
  }

  @Test func `the holder gets LeaseLost from the machine and when the link closes`() async throws {
    let rig = await Rig()
    let holder = try Client(rig.methods)
    _ = await rig.drive(holder)
    rig.probe.onInput { input, _, effects in
      if case .received = input { effects.append(.leaseLost("no setpoint came for 300 ms")) }
    }
    write(rig.line.controller, "x", 1)
    let lost = await holder.next()
    #expect(lost.contains("io.vehicled.LeaseLost") && lost.contains("no setpoint came for 300 ms"), "\(lost)")
    #expect(rig.device.lease == nil && rig.leases == ["lease"])
    let second = await rig.drive(holder)
    #expect(second.count > 20)
    rig.device.disconnect()
    #expect(await holder.next().contains("disconnected on request"))
    #expect(await rig.drive(holder).contains("io.vehicled.NotConnected"))
    rig.end()
  }

  @Test func `the lease ends when the device is reconfigured`() async throws {
    let rig = await Rig()
    let holder = try Client(rig.methods)
    _ = await rig.drive(holder)
    rig.hub.remove(rig.device)
    rig.device.close("device reconfigured or removed") {}
    #expect(await holder.next().contains("device reconfigured or removed"))
    #expect(rig.probe.inputTexts.contains("stopping"))
    rig.end()
  }

  @Test func `a device without motion cannot be driven`() async throws {
    let rig = await Rig(Schema(properties: [Property("led", .int, access: .write, help: "Light")]))
    let holder = try Client(rig.methods)
    #expect(await rig.drive(holder).contains("no-motion"))
    #expect(await holder.ask(#"{"method":"io.vehicled.Drive","parameters":{"device":"board"}}"#).contains("ExpectedMore"))
    #expect(
      await holder.ask(#"{"method":"io.vehicled.Drive","parameters":{"device":"board","deadlineMilliseconds":99},"more":true}"#)
        .contains("deadlineMilliseconds"))
    rig.end()
  }

  @Test func `an error names the missing right and how to get it`() async throws {
    let rig = await Rig()
    let stranger = try Client(rig.methods, user: 65534)
    let reply = await stranger.ask(#"{"method":"io.vehicled.Status"}"#)
    #expect(reply.contains(#""error":"org.varlink.service.PermissionDenied""#))
    #expect(
      reply.contains("nobody lacks the observe right, which requires group vehicled or group vehicled-observe; sudo usermod -aG vehicled"))
    #expect(await stranger.ask(#"{"method":"org.varlink.service.GetInfo"}"#).contains("io.vehicled"))
    rig.end()
  }
}
