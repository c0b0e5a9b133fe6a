import CLinux
import Glibc
import Protocols
import ServiceRuntime
import Testing

@testable import vehicled

/// A listening socket on the loopback with a free port, this queue and optionally a receive buffer of this size.
func listening(queue: CInt = 1, buffer: CInt? = nil) -> (listener: CInt, port: Int) {
  let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  if var buffer { setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &buffer, socklen_t(MemoryLayout<CInt>.size)) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  var size = socklen_t(MemoryLayout<sockaddr_in>.size)
  withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      _ = bind(listener, $0, size)
      _ = getsockname(listener, $0, &size)
    }
  }
  listen(listener, queue)
  return (listener, Int(UInt16(bigEndian: address.sin_port)))
}

@Suite("Device") @Loop struct DeviceTests {
  @Test func `a failed removal is reported`() async throws {
    let directory = temporaryDirectory()
    let disk = Disk(directory: directory)
    for folder in ["", "/devices", "/devices/ev", "/devices/ev/stuck"] { mkdir(directory + folder, 0o700) }
    var failures: [String: String?] = [:]
    for key in ["stuck", "nothing"] { disk.store(device: "ev", key: key, []) { failures[key] = $0 } }
    #expect(await until { failures.count == 2 })
    #expect(failures["stuck"]??.hasPrefix("cannot remove \(directory)/devices/ev/stuck: ") == true)
    #expect(failures["nothing"] == .some(nil), "removing a missing key succeeds")
  }

  @Test func `stored files do not follow symbolic links`() async throws {
    let directory = temporaryDirectory()
    let (folder, precious) = ("\(directory)/devices/ev", "\(directory)/precious")
    try Files.makeDirectory(folder)
    try Files.write(precious, [1, 2, 3], flags: O_CREAT)
    for name in [".speed.new", "speed"] { #expect(symlink(precious, "\(folder)/\(name)") == 0) }
    var isStored = false
    Disk(directory: directory).store(device: "ev", key: "speed", [7]) { isStored = $0 == nil }
    #expect(await until { isStored })
    #expect(try Files.read(precious, limit: 8) == [1, 2, 3] && Files.read("\(folder)/speed", limit: 8) == [7])
    #expect(Files.list(folder) == ["speed"])
    #expect(throws: ValueError.self) {
      _ = symlink(precious, "\(folder)/log")
      try Files.write("\(folder)/log", [7], flags: O_APPEND)
    }
    // The folder must not be a link either.
    #expect(symlink(folder, "\(directory)/devices/phone") == 0)
    var failure: String?
    Disk(directory: directory).store(device: "phone", key: "steps", [7]) { failure = $0 }
    #expect(await until { failure?.contains("symbolic link") == true })
    #expect(Files.list(folder) == ["log", "speed"])
  }

  @Test func `the machine gets its stored state`() async throws {
    let directory = temporaryDirectory()
    let probe = Probe()
    probe.onInput { input, _, effects in
      if case .started = input { effects.append(.store(key: "request", [1, 2, 3])) }
    }
    let disk = Disk(directory: directory)
    let device = device(probe, named: "ev", disk: disk)
    disk.restore(device: "ev") { device.open(restored: $0) }
    #expect(await until { probe.inputTexts.contains("stored request") })
    withExtendedLifetime(device) {}
    #expect(probe.inputTexts.first == "started []")
    var restored: [String: [UInt8]]?
    disk.restore(device: "ev") { restored = $0 }
    #expect(await until { restored == ["request": [1, 2, 3]] })
  }

  @Test func `a closed device is not opened again`() {
    let probe = Probe()
    let device = device(probe, links: [(.main, .serial(path: "/dev/vehicled-none", baud: 38400))])
    device.close {}
    device.open(restored: [:])
    #expect(probe.inputTexts == ["stopping", "main down"])
  }

  @Test func `a link closed while connecting reports nothing`() async throws {
    // With a full queue in the kernel the connection stays in SYN_SENT.
    let (listener, port) = listening(queue: 0)
    let probe = Probe()
    let device = device(probe, links: ["a", "b", "c", "d"].map { ($0, .tcp(host: "127.0.0.1", port: port)) })
    /// The number of connections to the listener in SYN_SENT.
    func pendingConnections() throws -> Int {
      let table = String(decoding: try Files.contents(of: "/proc/self/net/tcp", limit: 1 << 20), as: UTF8.self)
      return table.split(separator: "\n").count { line in
        let fields = line.split(separator: " ")
        return fields.count > 3 && Int(fields[2].suffix(4), radix: 16) == port && fields[3] == "02"
      }
    }
    device.open(restored: [:])
    #expect(await until { device.ports.contains(where: \.isUp) && (try? pendingConnections()) ?? 0 > 0 })
    device.disconnect()
    let count = probe.inputTexts.count
    #expect(await until { (try? pendingConnections()) == 0 })
    close(listener)
    #expect(probe.inputTexts.count == count)
    #expect(device.ports.allSatisfy { $0.nextAttempt == nil && !$0.isUp })
  }

  @Test func `perishable messages are not sent behind unacknowledged bytes`() async throws {
    let (listener, port) = listening(queue: 1, buffer: 4096)
    defer { close(listener) }
    let probe = Probe()
    probe.onInput { input, _, effects in
      switch input {
      case .linkChanged(.main, .up): effects.append(.sendUnlessBacklogged(.main, [1], 1, maxUnacknowledged: 0))
      // More than the peer reads, but not more than the kernel buffers.
      case .sent(1, _): effects.send(.main, [UInt8](repeating: 2, count: 60_000), nil)
      case .leaseEnded("again"): effects.append(.sendUnlessBacklogged(.main, [3], 2, maxUnacknowledged: 100))
      default: break
      }
    }
    let device = device(probe, links: [(.main, .tcp(host: "127.0.0.1", port: port))])
    device.open(restored: [:])
    let isBehind = await until { probe.inputTexts.contains("sent 1") && device.ports[0].backlog ?? 0 > 100 }
    #expect(isBehind, "\(probe.inputTexts), \(device.ports[0].state), \(device.ports[0].backlog ?? -1)")
    device.handle(.leaseEnded("again"))
    #expect(probe.inputTexts.last?.hasPrefix("sent 2: the peer has not acknowledged the last ") == true, "\(probe.inputTexts)")
    device.close {}
  }

  /// As during the shutdown sequence of the previous device of the same name.
  @Test func `commands wait for the restored state`() async {
    let probe = Probe()
    probe.onInput { input, _, effects in
      if case .perform(let id, _) = input { effects.append(.complete(id, .success(Report(text: "done")))) }
    }
    let device = device(probe)
    device.queueCommandsUntilOpen()
    var outcomes: [String?] = []
    _ = device.perform(.run(action: 0, arguments: [:])) { outcomes.append(try? $0.get().text) }
    let gone = device.perform(.run(action: 1, arguments: [:])) { _ in outcomes.append("cancelled") }
    device.cancel(gone)
    #expect(probe.inputTexts.isEmpty && outcomes.isEmpty)
    device.open(restored: [:])
    #expect(probe.inputTexts == ["started []", "run 0"] && outcomes == ["done"])
  }

  @Test func `a shutdown sequence is not interrupted`() async throws {
    let line = pseudoTerminal()
    defer { [line.controller, line.follower].forEach { close($0) } }
    let probe = Probe()
    probe.memory.withLock { $0.endsAtOnce = false }
    probe.onInput { input, _, effects in if case .leaseEnded("test") = input { effects.append(.stopped) } }
    let device = device(probe, links: [(.main, .serial(path: line.path, baud: 115200))])
    device.open(restored: [:])
    #expect(await until { device.ports[0].isUp })
    var completed: [Int] = []
    device.disconnect { _ in completed.append(1) }
    device.disconnect { _ in completed.append(2) }
    device.connect()
    #expect(device.ports[0].isUp && completed.isEmpty && probe.inputTexts.count { $0 == "stopping" } == 1)
    device.handle(.leaseEnded("said"))
    #expect(await until { completed.sorted() == [1, 2] })
    // The last request counts: the link comes up again.
    #expect(await until { device.ports[0].isUp })
    device.disconnect { _ in completed.append(3) }
    device.close { completed.append(4) }
    #expect(device.ports[0].isUp && completed.count == 2)
    device.handle(.leaseEnded("said"))
    #expect(await until { completed.sorted() == [1, 2, 3, 4] } && !device.ports[0].isUp)
    device.connect()
    device.disconnect { _ in completed.append(5) }
    #expect(await until { completed.last == 5 } && !device.ports[0].isUp)
  }

  @Test func `a disconnect lasts until connect, across restarts`() async throws {
    let disk = Disk(directory: temporaryDirectory())
    let line = pseudoTerminal()
    defer { [line.controller, line.follower].forEach { close($0) } }
    var probe = Probe()
    func restarted() -> Device {
      probe = Probe()
      let new = device(probe, named: "ev", links: [(.main, .serial(path: line.path, baud: 9600))], disk: disk)
      new.queueCommandsUntilOpen()
      return new
    }
    func open(_ device: Device) async {
      disk.restore(device: "ev") { device.open(restored: $0) }
      #expect(await until { !probe.inputTexts.isEmpty })
    }
    var ev = restarted()
    await open(ev)
    #expect(await until { ev.ports[0].isUp })
    var answers: [String?] = []
    ev.disconnect { answers.append($0) }
    #expect(await until { answers == [nil] } && !ev.ports[0].isUp)
    ev = restarted()
    await open(ev)
    #expect(probe.inputTexts == ["started []", "main down"] && ev.ports[0].nextAttempt == nil)
    #expect(ev.unreachableReason == "disconnected on request; to reconnect: vehiclectl connect ev")
    ev.connect { answers.append($0) }
    #expect(await until { answers.count == 2 && ev.ports[0].isUp })
    ev.disconnect { answers.append($0) }
    #expect(await until { answers.count == 3 })
    // Requested before the stored state is read.
    ev = restarted()
    ev.connect { answers.append($0) }
    #expect(!ev.ports[0].isUp && probe.inputTexts.isEmpty)
    await open(ev)
    #expect(await until { answers == [nil, nil, nil, nil] && ev.ports[0].isUp })
    ev.close {}
    ev = restarted()
    await open(ev)
    #expect(await until { ev.ports[0].isUp })
    ev.close {}
  }

  @Test func `a disconnect that cannot be stored fails`() async {
    let device = device(Probe(), links: [(.main, .serial(path: "/dev/vehicled-none", baud: 9600))], disk: Disk(directory: "/proc/none"))
    device.open(restored: [:])
    var answer: String??
    device.disconnect { answer = $0 }
    #expect(await until { answer != nil })
    #expect(answer??.hasPrefix("cannot create directory /proc/none") == true && !device.ports[0].isUp)
  }

  @Test func `a failed store is reported`() async {
    let probe = Probe()
    probe.onInput { input, _, effects in
      if case .started = input { effects.append(.store(key: "request", [1])) }
    }
    let device = device(probe, disk: Disk(directory: "/proc/none"))
    device.open(restored: [:])
    #expect(await until { probe.inputTexts.count == 2 })
    withExtendedLifetime(device) {}
    #expect(probe.inputTexts.last?.hasPrefix("stored request: cannot create directory /proc/none") == true)
  }

  @Test func `a serial link transfers bytes in both directions and reports its end`() async throws {
    let (controller, follower, path) = pseudoTerminal()
    _ = fcntl(controller, F_SETFL, O_NONBLOCK)
    let probe = Probe()
    probe.onInput { input, _, effects in
      if case .linkChanged(_, .up) = input { effects.send(.main, [65, 84, 90], 7) }
    }
    let device = device(probe, links: [(.main, .serial(path: path, baud: 38400))])
    device.open(restored: [:])
    #expect(await until { probe.inputTexts.contains("sent 7") })
    var bytes = [UInt8](repeating: 0, count: 16)
    #expect(await until { read(controller, &bytes, 16) == 3 })
    #expect(Array(bytes.prefix(3)) == [65, 84, 90])
    write(controller, "OK", 2)
    #expect(await until { probe.inputTexts.contains("main received OK") })
    close(follower)
    close(controller)
    #expect(await until { probe.inputTexts.last == "main down" })
    // The first end; later ones may come from retries.
    let reasons = probe.inputs.compactMap { if case .linkChanged(_, .down(let reason)) = $0 { reason } else { nil } }
    #expect(reasons.first?.contains("disappeared") == true, "\(reasons)")
    device.disconnect()
  }

  @Test func `a disconnect runs the shutdown sequence`() async throws {
    let (controller, follower, path) = pseudoTerminal()
    _ = fcntl(controller, F_SETFL, O_NONBLOCK)
    let probe = Probe()
    probe.onInput { input, _, effects in
      if case .stopping = input { effects.send(.main, [45], 1) }
    }
    let device = device(probe, links: [(.main, .serial(path: path, baud: 9600))])
    device.open(restored: [:])
    #expect(await until { device.ports[0].isUp })
    device.disconnect()
    var byte: UInt8 = 0
    #expect(await until { read(controller, &byte, 1) == 1 } && byte == 45)
    #expect(await until { probe.inputTexts.last == "main down" })
    #expect(device.ports[0].nextAttempt == nil)
    device.connect()
    #expect(await until { probe.inputTexts.last == "main up" })
    device.disconnect()
    close(follower)
    close(controller)
  }

  @Test func `a serial port in use is not opened`() async throws {
    let (controller, follower, path) = pseudoTerminal()
    defer {
      close(follower)
      close(controller)
    }
    #expect(clinux_serial_lock(follower) == 0)
    let device = device(Probe(), links: [(.main, .serial(path: path, baud: 38400))])
    device.open(restored: [:])
    #expect(await until { device.ports[0].nextAttempt != nil })
    guard case .down(let reason) = device.ports[0].state else { return #expect(Bool(false), "up") }
    #expect(reason == "\(path) is in use by another program: stop it first")
    device.disconnect()
  }

  @Test func `reconnection delays start at one second and grow`() {
    let device = device(Probe(), links: [(.main, .serial(path: "/dev/vehicled-none", baud: 38400))])
    let port = device.ports[0]
    let waits = (0..<9).map { _ -> Double in
      port.linkWentDown("gone", final: false)
      return Double((port.nextAttempt ?? 0) - port.since) / 1e6
    }
    port.close("test")
    #expect(waits[0] == 1)
    for (wait, next) in zip(waits, waits.dropFirst()) { #expect(next > wait || next >= 45) }
    #expect(waits.allSatisfy { $0 <= 60 })
    #expect(port.nextAttempt == nil)
    guard case .down(let reason) = port.state else { return #expect(Bool(false), "up") }
    #expect(reason == "test")
  }

  @Test func `an ended recording is not reopened`() {
    let device = device(Probe(), links: [(.main, .replay(path: "/nonexistent", speed: 1))])
    device.ports[0].linkWentDown("the recording has ended", final: true)
    #expect(device.ports[0].nextAttempt == nil)
  }

  @Test func `a command ends exactly once`() async {
    let probe = Probe()
    probe.onInput { input, _, effects in
      guard case .perform(let id, _) = input else { return }
      effects.append(.complete(id, .success(Report(text: "one"))))
      effects.append(.complete(id, .success(Report(text: "two"))))
    }
    var outcomes: [String?] = []
    let id = device(probe).perform(.run(action: 0, arguments: [:])) { outcomes.append(try? $0.get().text) }
    _ = id
    #expect(outcomes == ["one"])
  }

  @Test func `a command is cancelled when its caller disconnects`() async {
    let probe = Probe()
    let device = device(probe)
    var outcome = false
    let id = device.perform(.set(property: 0, .int(1))) { _ in outcome = true }
    device.cancel(id)
    #expect(probe.inputTexts == ["set 0 1", "cancelled"])
    #expect(!outcome)
  }

  @Test func `sending over a link that is down fails`() {
    let probe = Probe()
    probe.onInput { input, _, effects in
      if case .started = input { effects.send("other", [1], 3) }
    }
    device(probe).open(restored: [:])
    #expect(probe.inputTexts == ["started []", "sent 3: no link other"])
  }

  @Test func `the machine is woken on time`() async {
    let probe = Probe()
    probe.onInput { input, now, _ in
      if case .started = input { probe.memory.withLock { $0.nextWake = now + 5 * .millisecond } }
    }
    let device = device(probe)
    device.open(restored: [:])
    #expect(await until { probe.inputTexts == ["started []", "wake"] })
    withExtendedLifetime(device) {}
  }

  @Test func `a machine can open further links, and invalid URLs are rejected`() async {
    let probe = Probe()
    probe.onInput { input, _, effects in
      guard case .started = input else { return }
      effects.append(.openLink("video", url: "tcp:127.0.0.1:1"))
      effects.append(.openLink("other", url: "nonsense"))
    }
    let device = device(probe)
    device.open(restored: [:])
    #expect(await until { probe.inputTexts.contains("video down") })
    #expect(probe.inputTexts.contains("other down"))
    #expect(device.ports.map(\.name) == ["video"])
    device.disconnect()
  }

  @Test func `closing a device runs the shutdown sequence`() async {
    let probe = Probe()
    let device = device(probe)
    var closed = false
    device.close { closed = true }
    #expect(probe.inputTexts == ["stopping"])
    #expect(closed)
  }
}
