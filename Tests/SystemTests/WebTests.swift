// vehicled-web with the real daemon and simulated devices: signing in, what other sites and broken clients send, calls of pages, a slow
// browser, and a daemon that is killed.

import CLinux
import Foundation
import Testing

extension EndToEndServices {
  @Suite("Web server") struct WebTests {
    private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().path

    private func web(_ arguments: String..., signsIn: Bool = true) throws -> WebRig {
      let rig = try Rig()
      _ = try rig.ev()
      return try WebRig(rig, ["--control", "ev"] + arguments, signsIn: signsIn)
    }

    // MARK: Signing in

    @Test func `a link signs in one browser`() throws {
      let web = try web(signsIn: false)
      let link = web.token
      #expect(try web.request("GET", "/session").status == 401)
      let reply = try web.request("POST", "/session", ["Origin": web.origin], body: "{\"token\": \"\(link)\"}")
      let cookie = try #require(reply.headers["set-cookie"])
      #expect(reply.status == 200 && cookie.contains("; HttpOnly; SameSite=Strict; Max-Age=2592000") && !cookie.contains("Secure"))
      let key = try WebRig.key(reply)
      let headers = ["Cookie": "other=1; \(cookie.prefix { $0 != ";" })", "Vehicled-Key": key]
      let session = try web.request("GET", "/session", headers)
      #expect(session.status == 200 && session.body.contains("\"control\":[\"ev\"],\"withheld\":[],\"history\":false"), "\(session)")
      #expect(try web.request("POST", "/session", ["Origin": web.origin], body: "{\"token\": \"\(link)\"}").status == 401)
      #expect(wait { web.token != link }, "the used link prints a new one")
      try web.signIn(web.token)
    }

    @Test func `signing out ends the session and its WebSockets`() throws {
      let web = try web()
      let socket = try web.webSocket()
      #expect(try web.request("DELETE", "/session", web.credentials.merging(["Origin": web.origin]) { $1 }).status == 204)
      #expect(socket.next() == .closed(1008, "signed out"))
      #expect(try web.request("GET", "/session", web.credentials).status == 401)
      #expect(try web.request("GET", "/varlink/io.vehicled", web.handshake()).status == 401)
    }

    /// Browsers send the cookie also to servers of other users on other ports.
    @Test func `the cookie without the key of the origin is worth nothing`() throws {
      let web = try web()
      #expect(try web.request("GET", "/session", ["Cookie": web.cookie]).status == 401)
      for key in [nil, "", String(web.key.reversed()), web.key + "0"] {
        let forged = web.handshake().merging(["Vehicled-Key": key]) { $1 }
        #expect(try web.request("GET", "/varlink/io.vehicled", forged).status == 401)
        #expect(try web.request("DELETE", "/session", forged).status == 204)
      }
      #expect(try web.request("GET", "/session", ["Vehicled-Key": web.key]).status == 401)
      #expect(try web.request("GET", "/session", web.credentials).status == 200)
      // As browsers send it, which also expect the name of the protocol in the reply.
      let offer = ["Vehicled-Key": nil, "Sec-WebSocket-Protocol": "vehicled, key-\(web.key)"]
      let reply = try web.request("GET", "/varlink/io.vehicled", web.handshake().merging(offer) { $1 })
      #expect(reply.status == 101 && reply.headers["sec-websocket-protocol"] == "vehicled")
    }

    @Test func `a restart of the service signs out no browser, unless its token is replaced`() throws {
      let rig = try Rig()
      _ = try rig.ev()
      let (file, configuration) = ("\(rig.directory)/phone.token", "\(rig.directory)/web.toml")
      func replaceToken(_ text: String) throws {
        try rig.write(text, to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
      }
      let token = "0123456789abcdef0123456789abcdef"
      try replaceToken(token)
      try rig.write("[token.phone]\nfile = \"\(file)\"\ncontrol = [\"ev\"]\n", to: configuration)
      func service() throws -> WebRig {
        try WebRig(rig, ["--config", configuration], signsIn: false, environment: ["RUNTIME_DIRECTORY": rig.directory])
      }
      let first = try service()
      try first.signIn(token)
      first.program.end(SIGKILL)
      let stored = try String(contentsOfFile: "\(rig.directory)/sessions", encoding: .utf8)
      #expect(!stored.contains(token) && !stored.contains(first.cookie.split(separator: "=")[1]) && !stored.contains(first.key))
      // The name of the cookie contains the port, which is another one.
      func session(_ web: WebRig) throws -> HTTPConnection.Reply {
        let value = first.cookie.split(separator: "=")[1]
        return try web.request("GET", "/session", ["Cookie": "vehicled-web-\(web.port)=\(value)", "Vehicled-Key": first.key])
      }
      let second = try service()
      #expect(try session(second).body.contains("\"control\":[],\"withheld\":[\"ev\"]"), "a stored session only observes")
      second.program.end()
      try replaceToken(String(token.reversed()))
      let third = try service()
      #expect(try session(third).status == 401)
      third.program.end()
      try rig.write("{", to: "\(rig.directory)/sessions")
      let fourth = try service()
      #expect(fourth.program.stderr.contains("it is now \(rig.directory)/sessions.damaged; all browsers must sign in again"))
      try fourth.signIn(String(token.reversed()))
    }

    @Test func `what other sites send is rejected, and changes nothing`() throws {
      let web = try web()
      let token = "{\"token\": \"\(web.token)\"}"
      for host in ["evil.example:\(web.port)", "evil.example", "127.0.0.1", "[::1]:1", "localhost:\(web.port).evil.example"] {
        for path in ["/", "/session", "/varlink/io.vehicled"] {
          let reply = try web.request("GET", path, web.handshake().merging(["Host": host]) { $1 })
          #expect(reply.status == 421 && !reply.body.contains("<title>"), "\(host) \(path)")
        }
      }
      #expect(try web.request("GET", "/", ["Host": nil]).status == 400)
      for origin in ["http://evil.example", "null", "https://127.0.0.1:\(web.port)", "http://localhost:\(web.port)", nil] {
        #expect(try web.request("POST", "/session", ["Origin": origin], body: token).status == 403, "\(origin ?? "none")")
        #expect(try web.request("DELETE", "/session", web.credentials.merging(["Origin": origin]) { $1 }).status == 403)
        #expect(try web.request("GET", "/varlink/io.vehicled", web.handshake().merging(["Origin": origin]) { $1 }).status == 403)
      }
      for method in ["PUT", "PATCH", "OPTIONS", "TRACE"] {
        let reply = try web.request(method, "/session", ["Origin": "http://evil.example"])
        #expect(reply.status == 405 && !reply.headers.keys.contains { $0.hasPrefix("access-control") }, "\(method)")
      }
      for cookie in ["", "vehicled-web-\(web.port)=", "vehicled-web-\(web.port)=0", web.cookie + "0"] {
        #expect(try web.request("GET", "/varlink/io.vehicled", web.handshake(cookie: cookie)).status == 401)
      }
      #expect(try web.request("GET", "/session", web.credentials).status == 200)
      #expect(try web.webSocket().error("io.vehicled.Status") == nil)
    }

    @Test func `many wrong tokens do not prevent a browser from signing in`() throws {
      let web = try web(signsIn: false)
      let statuses = try (0..<22).map { _ in
        try web.request("POST", "/session", ["Origin": web.origin], body: "{\"token\": \"wrong\"}").status
      }
      #expect(statuses.prefix(20).allSatisfy { $0 == 401 } && statuses.last == 429, "\(statuses)")
      try web.signIn(web.token)
      for body in ["", "{}", "[]", "{\"token\": 5}", "token", "{\"token\": \"\u{0}\"}"] {
        #expect([400, 429].contains(try web.request("POST", "/session", ["Origin": web.origin], body: body).status), "\(body)")
      }
    }

    @Test func `a kiosk signs in with a token that only its user can read`() throws {
      let rig = try Rig()
      _ = try rig.ev()
      let (file, configuration) = ("\(rig.directory)/kiosk.token", "\(rig.directory)/web.toml")
      try rig.write("0123456789abcdef0123456789abcdef\n", to: file)
      try rig.write("[token.kiosk]\nfile = \"\(file)\"\nkiosk = true\n", to: configuration)
      try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
      let arguments = ["--config", configuration, "--files", "\(rig.directory)/page", "--listen", "127.0.0.1:0"]
      try FileManager.default.createDirectory(atPath: "\(rig.directory)/page", withIntermediateDirectories: true)
      try rig.write("<!doctype html>", to: "\(rig.directory)/page/index.html")
      let refused = rig.run("\(Rig.programs)/vehicled-web", arguments)
      #expect(refused.status == 2 && refused.errors.contains("token kiosk: \(file) is accessible to other users; chmod 600"))
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
      let web = try WebRig(rig, ["--config", configuration], signsIn: false)
      #expect(web.program.stdout == "", "a service prints no link")
      for _ in 0..<2 {
        try web.signIn("0123456789abcdef0123456789abcdef")
        #expect(
          try web.request("GET", "/session", web.credentials).body.contains(
            "\"control\":[],\"withheld\":[],\"history\":false,\"kiosk\":true"))
      }
      #expect(try web.webSocket().error("io.vehicled.Disconnect", "{\"device\":\"ev\"}") == "org.varlink.service.PermissionDenied")
    }

    @Test func `errors at the start name the remedy`() throws {
      let rig = try Rig()
      let web = "\(Rig.programs)/vehicled-web"
      try rig.write("short", to: "\(rig.directory)/token")
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(rig.directory)/token")
      try rig.write("<!doctype html>", to: "\(rig.directory)/index.html")
      try rig.write("[token.a]\nfile = \"\(rig.directory)/token\"\n[web]\nfiles = \"\(rig.directory)\"\n", to: "\(rig.directory)/web.toml")
      try rig.write("", to: "\(rig.directory)/empty.toml")
      let taken = try HTTPListener()
      for (arguments, status, message) in [
        (["--listen", "0.0.0.0:8270"], 2, "can be reached from other computers, without encryption; use 127.0.0.1:PORT"),
        (["--files", "\(rig.directory)/none"], 1, "no such file"), (["--config", "\(rig.directory)/none.toml"], 2, "no such file"),
        (["--config", "\(rig.directory)/web.toml"], 2, "is shorter than 22 characters; create one with: openssl rand -hex 16"),
        (["--config", "\(rig.directory)/empty.toml"], 2, "no browser could sign in; add [token.NAME]"),
        (["--files", rig.directory, "--listen", "127.0.0.1:\(taken.port)"], 1, "choose another with --listen"),
        (["--files", rig.directory, "--listen", "unix:\(rig.directory)/token"], 1, "exists and is not a socket"),
        (["--config", "\(rig.directory)/web.toml", "--control", "ev"], 64, "--control is for the link"),
      ] as [([String], Int32, String)] {
        let outcome = rig.run(web, arguments)
        #expect(outcome.status == status && outcome.errors.contains(message), "\(arguments): \(outcome)")
      }
      let checked = rig.run(web, ["--check-config", "--config", "\(rig.directory)/web.toml"])
      #expect(checked.status == 0 && checked.output == "ok: 127.0.0.1:8270\n")
    }

    // MARK: HTTP

    @Test func `files, methods and missing pages`() throws {
      let web = try web()
      let page = try web.request("GET", "/?x=1", ["Accept-Encoding": "identity"])
      #expect(page.status == 200 && page.body.contains("<title>vehicled</title>"))
      #expect(try web.request("GET", "/", ["If-None-Match": page.headers["etag"]]).status == 304)
      let head = try web.request("HEAD", "/")
      #expect(head.status == 200 && head.headers["content-length"] == "\(page.body.utf8.count)")
      for path in ["/missing", "/../vehicled.toml", "/%2e%2e/vehicled.toml", "//etc/passwd", "/metrics", "/varlink", "/session/"] {
        #expect(try web.request("GET", path).status == 404, "\(path)")
      }
      #expect(try web.request("POST", "/", ["Origin": web.origin], body: "x").headers["allow"] == "GET, HEAD")
      #expect(try web.request("GET", "/varlink/io.vehicled", web.credentials).status == 426)
      let connection = try HTTPConnection(port: web.port)
      // Pipelined requests are answered in order, and the connection can then become a WebSocket, as behind a reverse proxy.
      connection.send(web.text("GET", "/") + web.text("GET", "/missing") + web.text("GET", "/varlink/io.vehicled", web.handshake()))
      #expect([connection.reply()?.status, connection.reply()?.status, connection.reply()?.status] == [200, 404, 101])
    }

    @Test func `garbage, huge requests and half-closed connections harm only themselves`() throws {
      let web = try web()
      let slow = try HTTPConnection(port: web.port)
      slow.send("GET / HTTP/1.1\r\nHost: 127")
      for garbage in [
        "\u{0}\u{1}\u{2}", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\r\n\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}",
        "GET / HTTP/1.1\r\n: x\r\n\r\n",
        "POST /session HTTP/1.1\r\nHost: 127.0.0.1:\(web.port)\r\nContent-Length: -1\r\n\r\n",
        "POST /session HTTP/1.1\r\nHost: 127.0.0.1:\(web.port)\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:\(web.port)\r\n" + String(repeating: "X: y\r\n", count: 100) + "\r\n",
        "GET / HTTP/1.1\r\nX: " + String(repeating: "y", count: 9000) + "\r\n\r\n",
        "GET /" + String(repeating: "y", count: 100_000) + " HTTP/1.1\r\n\r\n",
      ] {
        let connection = try HTTPConnection(port: web.port)
        connection.send(garbage)
        // An empty line before a request is permitted: nothing follows, until the client closes.
        shutdown(connection.descriptor, Int32(SHUT_WR))
        if let reply = connection.reply() { #expect([400, 431].contains(reply.status), "\(garbage.prefix(40))") }
        #expect(connection.isClosed(), "\(garbage.prefix(40))")
      }
      let body = String(repeating: "x", count: 5000)
      #expect(try web.request("POST", "/session", ["Origin": web.origin], body: body).status == 413)
      slow.send(".0.0.1:\(web.port)\r\n\r\n")
      #expect(slow.reply()?.status == 200)
      #expect(try web.webSocket().error("io.vehicled.Status") == nil && web.program.isRunning)
    }

    @Test func `connections that are kept open do not keep others out`() throws {
      let web = try web()
      let socket = try web.webSocket()
      let idle = try (0..<200).map { _ in try HTTPConnection(port: web.port) }
      #expect(try web.request("GET", "/").status == 200 && socket.error("io.vehicled.Status") == nil)
      #expect(idle[0].isClosed(), "the oldest one is closed")
      idle[199].send(web.text("GET", "/"))
      #expect(idle[199].reply()?.status == 200)
    }

    // MARK: WebSockets

    @Test func `a page reads what vehiclectl reads`() throws {
      let web = try web()
      #expect(wait { web.rig.get("ev.state-of-charge") != nil })
      let socket = try web.webSocket()
      let reply = try socket.call("io.vehicled.Get", "{\"references\":[\"ev.vin\"]}")
      let readings = (reply["parameters"] as? [String: Any])?["readings"] as? [[String: Any]]
      #expect((readings?.first?["value"] as? [String: Any])?["string"] as? String == web.rig.get("ev.vin"))
      socket.send("{\"method\":\"io.vehicled.Watch\",\"parameters\":{},\"more\":true}")
      let first = try socket.json()
      #expect(((first["parameters"] as? [String: Any])?["snapshot"] as? [[String: Any]])?.first?["name"] as? String == "ev")
      let later = try socket.json()
      #expect((later["parameters"] as? [String: Any])?["sequence"] as? Int == 1 && later["continues"] as? Bool == true)
      socket.send("{\"method\":\"io.vehicled.Status\"}")
      var end: WebSocketClient.Event?
      _ = wait {
        end = socket.next()
        if case .message? = end { return false }
        return true
      }
      #expect(end == .closed(1008, "a call with \"more\" runs on this connection; open another one for further calls"))
    }

    @Test func `after the last reply to a call with more, a WebSocket accepts further calls`() throws {
      let rig = try Rig()
      let car = try rig.start("vehiclesim", ["rc-car", "--on", "tcp:127.0.0.1:0", "--restart", "0.5"])
      try #require(wait { car.stdout.contains("\n") })
      try rig.write("[device.car]\nkind = \"rc-car\"\nlink = \"\(car.stdout.split(separator: "\n").first ?? "")\"\n")
      _ = try rig.daemon()
      try #require(wait { rig.get("car.connected") == "on" })
      let socket = try WebRig(rig, ["--control", "car"]).webSocket()
      for _ in 0..<2 {
        socket.send("{\"method\":\"io.vehicled.Call\",\"parameters\":{\"device\":\"car\",\"action\":\"mode-info\"},\"more\":true}")
        var reply = try socket.json()
        while reply["continues"] as? Bool == true { reply = try socket.json() }
        #expect(reply["error"] == nil)
        // A stream that ends with an error at once.
        socket.send("{\"method\":\"io.vehicled.Record\",\"parameters\":{\"device\":\"other\"},\"more\":true}")
        #expect(try socket.json()["error"] as? String == "io.vehicled.NoSuchDevice")
        #expect(try socket.error("io.vehicled.Drive", "{\"device\":\"car\"}") == "org.varlink.service.PermissionDenied")
        #expect(try socket.error("io.vehicled.Status") == nil)
      }
    }

    @Test func `a page may not do more than its session`() throws {
      let web = try web()
      let socket = try web.webSocket()
      let denied = "org.varlink.service.PermissionDenied"
      for (method, parameters) in [
        ("Drive", "{\"device\":\"ev\"}"), ("Scan", "{}"), ("Reload", "{}"), ("LogLevel", "{}"), ("Disconnect", "{\"device\":\"other\"}"),
        ("Call", "{\"device\":\"ev\",\"action\":\"query\",\"arguments\":{\"request\":{\"string\":\"010C\"}}}"),
        ("Set", "{\"device\":\"ev\",\"property\":\"x\",\"value\":{\"int\":1},\"lease\":\"x\"}"),
      ] {
        #expect(try socket.error("io.vehicled.\(method)", parameters) == denied, "\(method)")
      }
      // The errors of rejected calls are in the order of the calls.
      let methods = ["Status", "Drive", "Describe", "Reload", "Diagnose", "Scan"]
      for method in methods { socket.send("{\"method\":\"io.vehicled.\(method)\"}") }
      #expect(try methods.map { _ in try socket.json()["error"] == nil } == [true, false, true, false, true, false])
      #expect(try socket.error("io.vehicled.Disconnect", "{\"device\":\"ev\"}") == nil)
      #expect(wait { web.rig.vehiclectl("status", "ev").output.contains("disconnected") || web.rig.get("ev.speed") == nil })
    }

    @Test func `a page can stop a vehicle, but not move it`() throws {
      let rig = try Rig()
      let car = try rig.start("vehiclesim", ["rc-car", "--on", "tcp:127.0.0.1:0", "--restart", "0.5", "-v"])
      try #require(wait { car.stdout.contains("\n") })
      try rig.write("[device.car]\nkind = \"rc-car\"\nlink = \"\(car.stdout.split(separator: "\n").first ?? "")\"\n")
      _ = try rig.daemon()
      try #require(wait { rig.get("car.connected") == "on" })
      let socket = try WebRig(rig, ["--control", "car"]).webSocket()
      // It stops by itself when the daemon connects.
      var stops: Int { car.stderr.components(separatedBy: "Stop#$#%^%").count }
      let before = stops
      for action in ["continue", "tilt"] {
        let call = "{\"device\":\"car\",\"action\":\"\(action)\",\"arguments\":{\"roll\":{\"float\":0.4}}}"
        #expect(try socket.error("io.vehicled.Call", call) == "io.vehicled.LeaseRequired", "\(action)")
      }
      #expect(!car.stderr.contains("car: motors"))
      #expect(try socket.error("io.vehicled.Call", "{\"device\":\"car\",\"action\":\"stop\"}") == nil)
      #expect(wait { stops > before })
    }

    @Test func `frames that no browser sends close the WebSocket`() throws {
      let web = try web()
      let call = Array("{\"method\":\"org.varlink.service.GetInfo\"}".utf8)
      let large = [UInt8](repeating: 0x20, count: 70_000)
      for (bytes, code) in [
        (WebSocketClient.frame(Array("{".utf8)), 1002), (WebSocketClient.frame(call, opcode: 2), 1003),
        (WebSocketClient.frame(call, opcode: 0), 1002), (WebSocketClient.frame(call, masked: false), 1002),
        (WebSocketClient.frame(large), 1009), (WebSocketClient.frame(call, opcode: 11), 1002),
        (
          WebSocketClient.frame(Array(large.prefix(40_000)), fin: false) + WebSocketClient.frame(Array(large.prefix(40_000)), opcode: 0),
          1009
        ),
        (WebSocketClient.frame(call + [0] + call), 1002), (WebSocketClient.frame([0xFF, 0xFE]), 1002), ([0xF1, 0x80, 1, 2, 3, 4], 1002),
        (WebSocketClient.frame([3, 0xE8] + Array("bye".utf8), opcode: 8), 1000), (WebSocketClient.frame([], opcode: 8), 0),
      ] as [([UInt8], Int)] {
        let socket = try web.webSocket()
        socket.connection.send(bytes)
        guard case .closed(let given, _)? = socket.next() else { throw EndOfTest("not closed for \(code): \(bytes.prefix(20))") }
        #expect(given == code, "\(bytes.prefix(20))")
        #expect(socket.connection.isClosed())
      }
      let socket = try WebSocketClient(web, "/varlink/io.vehicled", early: WebSocketClient.frame(call))
      #expect(try socket.json()["error"] == nil, "a call that follows the request at once")
      socket.send("{\"method\":\"org.varlink", fin: false)
      socket.send("are you there", opcode: 9)
      socket.send(".service.GetInfo\"}", opcode: 0)
      #expect(try socket.json()["error"] == nil, "a call in fragments, with a ping between them")
      shutdown(socket.connection.descriptor, Int32(SHUT_WR))
      #expect(socket.connection.isClosed())
    }

    @Test func `the number of WebSockets of a session is limited`() throws {
      let web = try web()
      let sockets = try (0..<24).map { _ in try web.webSocket() }
      #expect(try web.request("GET", "/varlink/io.vehicled", web.handshake()).status == 429)
      #expect(try sockets[0].error("io.vehicled.Status") == nil)
      shutdown(sockets[1].connection.descriptor, Int32(SHUT_RDWR))
      #expect(wait { (try? web.request("GET", "/varlink/io.vehicled", web.handshake()).status) == 101 })
    }

    @Test func `calls that are made too fast are delayed, not lost`() throws {
      let web = try web()
      let socket = try web.webSocket()
      for _ in 0..<150 { socket.send("{\"method\":\"org.varlink.service.GetInfo\"}") }
      let start = Date()
      for _ in 0..<150 { #expect(try socket.json()["error"] == nil) }
      #expect(Date().timeIntervalSince(start) > 0.5)
    }

    @Test func `a browser that does not read costs neither memory nor polls`() throws {
      let rig = try Rig()
      _ = try rig.ev(options: "rate = 20")
      let web = try WebRig(rig)
      let sockets = try (0..<20).map { _ in try web.webSocket() }
      for socket in sockets {
        var size: Int32 = 4096
        setsockopt(socket.connection.descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        socket.send("{\"method\":\"io.vehicled.Watch\",\"parameters\":{},\"more\":true}")
      }
      #expect(wait { web.rig.get("ev.missed") != nil })
      sleep(2)
      let count = { (name: String) in web.rig.get("ev.\(name)").flatMap { Int($0) } ?? 0 }
      let (memory, missed, polls) = (web.memory, count("missed"), count("polls"))
      sleep(5)
      // AddressSanitizer keeps what is freed.
      #expect(web.memory - memory < 4000 || isSanitized, "\(memory) kB, then \(web.memory) kB")
      // On a busy machine, some polls are late. If the browsers held up the daemon, nearly all would be missed.
      #expect(count("polls") - polls > 50 && (count("missed") - missed < 30 || isSanitized))
      // What it reads later is merged: far fewer messages than there were changes.
      #expect(try sockets[0].json()["parameters"] != nil)
    }

    @Test func `the daemon is killed, and comes back`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      let web = try WebRig(rig)
      let socket = try web.webSocket()
      #expect(try socket.error("io.vehicled.Status") == nil)
      daemon.end(SIGKILL)
      #expect(socket.next() == .closed(1011, "vehicled has closed the connection"))
      #expect(try web.webSocket().next() == .closed(1013, "no process is listening on \(rig.socket)"))
      #expect(try web.request("GET", "/session", web.credentials).status == 200)
      _ = try rig.daemon()
      #expect(try web.webSocket().error("io.vehicled.Status") == nil)
      #expect(
        try web.webSocket("/varlink/io.vehicled.history").next()
          == .closed(1013, "no process is listening on \(rig.directory)/history.socket"))
      #expect(web.program.end() == 0)
    }

    @Test func `a daemon that hangs is noticed, and its return as well`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      let web = try WebRig(rig)
      let socket = try web.webSocket()
      socket.send("{\"method\":\"io.vehicled.Watch\",\"more\":true}")
      _ = try socket.json()
      daemon.signal(SIGSTOP)
      defer { daemon.signal(SIGCONT) }
      var event = socket.next()
      while case .message = event { event = socket.next() }
      let reason = "vehicled does not respond; see: systemctl status vehicled"
      #expect(event == .closed(1013, reason))
      #expect(try web.webSocket().next() == .closed(1013, reason), "no connection waits for a daemon that hangs")
      daemon.signal(SIGCONT)
      #expect(wait { (try? web.webSocket().call("io.vehicled.Status")) != nil })
    }

    // MARK: Metrics and reverse proxies

    @Test func `Prometheus reads values with the times of their measurement`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      let (file, configuration) = ("\(rig.directory)/metrics.token", "\(rig.directory)/web.toml")
      try rig.write("0123456789abcdef0123456789abcdef", to: file)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
      try rig.write("[metrics]\ntoken-file = \"\(file)\"\n", to: configuration)
      let web = try WebRig(rig, ["--config", configuration], signsIn: false)
      for given in [nil, "Bearer", "Bearer x", "Basic 0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef"] {
        #expect(try web.request("GET", "/metrics", ["Authorization": given]).status == 401, "\(given ?? "none")")
      }
      let authorization = ["Authorization": "Bearer 0123456789abcdef0123456789abcdef"]
      #expect(wait { rig.get("ev.battery-voltage") != nil })
      let reply = try web.request("GET", "/metrics", authorization)
      #expect(reply.status == 200 && reply.headers["content-type"]?.hasPrefix("application/openmetrics-text; version=1.0.0") == true)
      let checked = rig.run(Rig.python, ["\(Self.tests)/Peers/web_metrics.py"], input: reply.body)
      #expect(checked.status == 0, "\(checked.errors)")
      daemon.end()
      let failed = try web.request("GET", "/metrics", authorization)
      #expect(failed.status == 503 && failed.body.contains("no process is listening"))
      #expect(try web.request("GET", "/session").status == 401)
    }

    @Test func `a reverse proxy connects to a Unix socket`() throws {
      let rig = try Rig()
      _ = try rig.ev()
      let (path, configuration) = ("\(rig.directory)/web.socket", "\(rig.directory)/web.toml")
      try rig.write("<!doctype html>", to: "\(rig.directory)/index.html")
      try rig.write("0123456789abcdef0123456789abcdef", to: "\(rig.directory)/token")
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(rig.directory)/token")
      try rig.write(
        """
        [web]
        listen = "unix:\(path)"
        origins = ["https://car.example"]
        files = "\(rig.directory)"
        daemon = "\(rig.socket)"
        [token.phone]
        file = "\(rig.directory)/token"
        """, to: configuration)
      let program = try rig.start("vehicled-web", ["--config", configuration])
      try #require(wait { program.stderr.contains("serving on unix:") }, "\(program.stderr)")
      func curl(_ arguments: String...) -> String {
        rig.run("/usr/bin/curl", ["-s", "-i", "--max-time", "5", "--unix-socket", path] + arguments).output
      }
      #expect(curl("-H", "Host: car.example", "http://localhost/").hasPrefix("HTTP/1.1 200"))
      #expect(curl("-H", "Host: evil.example", "http://localhost/").hasPrefix("HTTP/1.1 421"))
      let token = "{\"token\": \"0123456789abcdef0123456789abcdef\"}"
      let session = "http://car.example/session"
      #expect(curl("-H", "Origin: http://car.example", "-d", token, session).hasPrefix("HTTP/1.1 403"))
      let reply = curl("-H", "Origin: https://car.example", "-d", token, session)
      #expect(reply.hasPrefix("HTTP/1.1 200") && reply.contains("Set-Cookie: vehicled-web=") && reply.contains("; Secure"))
      #expect(program.end() == 0 && !FileManager.default.fileExists(atPath: path))
    }
  }
}

/// A TCP port that is in use.
private final class HTTPListener {
  let port: UInt16
  private let descriptor: Int32

  init() throws {
    port = try freePort()
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let descriptor = descriptor
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
    try #require(result == 0 && listen(descriptor, 1) == 0)
  }

  deinit { close(descriptor) }
}
