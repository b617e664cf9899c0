"""Calls objects of a Hearth server over HTTP. Needs nothing but Python 3.9 or newer.

    from hearth_client import Hearth

    client = Hearth("http://localhost:8787")
    client.objects.call("counter", "user-1", method="increment", args=5)

Retries. A request is sent again if it got no answer or the answer is "retryable": `retries` times,
after 0.1 s, 0.2 s, 0.4 s ..., and not before the `Retry-After` of the answer. All attempts of a
call have the same `Idempotency-Key`, so the server runs the call once. A removal and an alarm have
no key: they are sent again only if the server answers 429 or 503, which says that it has not taken
them. Without an answer they may have been done, and a second removal could remove an object that
another client has made meanwhile.

Redirects are refused: the token is for this server alone.

Failure. HearthError if the server refuses the request, ConnectionError if there is no answer.

Threads. One Hearth may be used by many threads. It keeps no connection between two requests.
"""
from __future__ import annotations

import datetime
import http.client
import json
import os
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any, Dict, Iterator, List, Optional, Union

__all__ = ["Hearth", "HearthError", "ObjectInfo", "Objects"]

_MAX_BACKOFF_SECONDS = 5.0


class HearthError(Exception):
    """The server refused the request. `code` says why: "object_not_found", "invalid_method"..."""

    def __init__(self, status: int, code: str, message: str, retryable: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retryable = retryable


class ObjectInfo:
    """An object, as the server describes it. `storage` is None in lists."""

    def __init__(self, data: Dict[str, Any]) -> None:
        self.id: str = data["id"]  # its own; a new object of the same name has another
        self.class_name: str = data["class"]
        self.object_id: str = data["object_id"]
        self.status: str = data["status"]  # "Active" or "Hibernating"
        self.sandbox_name: str = data["sandbox_name"]
        self.created_at: str = data["created_at"]  # RFC 3339
        self.last_active: str = data["last_active"]
        self.storage: Optional[Dict[str, Any]] = data.get("storage")

    def __repr__(self) -> str:
        return f"ObjectInfo({self.class_name!r}, {self.object_id!r}, {self.status!r})"


class Objects:
    """The objects of a server: Hearth.objects."""

    def __init__(self, client: "Hearth") -> None:
        self._client = client

    def call(self, class_name: str, object_id: str, method: str, args: Any = None, *,
             idempotency_key: Optional[str] = None) -> Any:
        """The result of the method. A list of `args` is positional, any other value is the only
        argument. Pass `idempotency_key` if another process must be able to repeat the call."""
        body = {"method": method} if args is None else {"method": method, "args": args}
        key = idempotency_key or str(uuid.uuid4())
        return self._client._request("POST", _path(class_name, object_id, "call"), body,
                                     {"Idempotency-Key": key})["result"]

    def get(self, class_name: str, object_id: str) -> ObjectInfo:
        """The object, with all its storage."""
        after = ""
        storage: Dict[str, Any] = {}
        while True:
            query = "?" + urllib.parse.urlencode({"limit": 1000, "after": after})
            data = self._client._request("GET", _path(class_name, object_id) + query)["data"]
            storage.update(data.get("storage") or {})
            after = data.get("storage_next")
            if not after:
                return ObjectInfo({**data, "storage": storage})

    def list(self, class_name: Optional[str] = None,
             status: Optional[str] = None) -> List[ObjectInfo]:
        """All objects, or those of a class, or with a status."""
        return list(self.iterate(class_name, status))

    def iterate(self, class_name: Optional[str] = None,
                status: Optional[str] = None) -> Iterator[ObjectInfo]:
        """The same, a page at a time."""
        asked = {"class": class_name, "status": status, "limit": "1000", "cursor": ""}
        while True:
            query = urllib.parse.urlencode({k: v for k, v in asked.items() if v})
            page = self._client._request("GET", "/objects?" + query)
            yield from map(ObjectInfo, page["data"])
            if not page.get("next"):
                return
            asked["cursor"] = page["next"]

    def delete(self, class_name: str, object_id: str) -> None:
        """Removes the object, its storage and its alarms. Not sent again without an answer."""
        self._client._request("DELETE", _path(class_name, object_id))

    def set_alarm(self, class_name: str, object_id: str, method: str, args: Any = None, *,
                  fire_at: Union[str, datetime.datetime, None] = None,
                  fireAt: Union[str, datetime.datetime, None] = None,
                  delay_seconds: Optional[float] = None) -> Dict[str, Any]:
        """Sets an alarm: the server calls the method at a time (RFC 3339 or a datetime with a zone)
        or after a number of seconds. Returns the alarm as the server keeps it. Not sent again
        without an answer."""
        at = fireAt if fire_at is None else fire_at
        if isinstance(at, datetime.datetime):
            if at.tzinfo is None:
                raise ValueError("fire_at: a datetime needs a time zone")
            at = at.isoformat()
        body = {"method": method, "args": args, "fire_at": at, "delay_seconds": delay_seconds}
        body = {key: value for key, value in body.items() if value is not None}
        return self._client._request("POST", _path(class_name, object_id, "alarms"), body)["data"]

    setAlarm = set_alarm


class Hearth:
    """A server. The environment's HEARTH_URL and HEARTH_TOKEN are the defaults.

    url      without HEARTH_URL: http://localhost:8787
    token    the key of objects, the administrators' token, or a token of a client of agents
    timeout  seconds for one attempt; longer than the server's deadline for a call, 30 s
    retries  how many times a request is sent again
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *,
                 timeout: float = 35.0, retries: int = 3) -> None:
        self.url = (url or os.environ.get("HEARTH_URL") or "http://localhost:8787").rstrip("/")
        self._token = token or os.environ.get("HEARTH_TOKEN")
        self._timeout = timeout
        self._retries = retries
        self.objects = Objects(self)

    def _request(self, method: str, path: str, body: Any = None,
                 headers: Optional[Dict[str, str]] = None) -> Dict[str, Any]:
        repeatable = method == "GET" or "Idempotency-Key" in (headers or {})
        for attempt in range(self._retries + 1):
            wait = random.uniform(0.5, 1) * min(0.1 * 2 ** attempt, _MAX_BACKOFF_SECONDS)
            try:
                return self._attempt(method, path, body, headers or {})
            except urllib.error.HTTPError as response:
                error = _error_of(response)
                if attempt == self._retries or not _may_send_again(error, repeatable):
                    raise error from None
                wait = max(wait, _retry_after(response))
            except (OSError, http.client.HTTPException) as failure:
                if attempt == self._retries or not repeatable:
                    raise ConnectionError(f"{self.url} does not answer: {failure}") from failure
            time.sleep(wait)
        raise AssertionError("a loop that always returns or raises")

    def _attempt(self, method: str, path: str, body: Any, headers: Dict[str, str]) -> Dict[str, Any]:
        request = urllib.request.Request(self.url + path, method=method)
        for name, value in headers.items():
            request.add_header(name, value)
        if self._token:
            request.add_header("Authorization", "Bearer " + self._token)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with _OPENER.open(request, timeout=self._timeout) as response:
            text = response.read()
        try:
            return json.loads(text)
        except ValueError:
            raise HearthError(response.status, "bad_answer", "the answer is no JSON") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None  # a redirect then becomes an HTTPError


_OPENER = urllib.request.build_opener(_NoRedirect)


def _may_send_again(error: HearthError, repeatable: bool) -> bool:
    # If the server answers these as "retryable", it has done nothing: a limit that a method reaches
    # is not retryable. A proxy ("http_error") does not know what the server has done.
    has_done_nothing = error.status in (429, 503) and error.code != "http_error"
    return error.retryable and (repeatable or has_done_nothing)


def _path(*segments: str) -> str:
    return "/objects/" + "/".join(urllib.parse.quote(segment, safe="") for segment in segments)


def _error_of(response: urllib.error.HTTPError) -> HearthError:
    try:
        body = json.loads(response.read())
    except (ValueError, OSError, http.client.HTTPException):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("error"), str):
        # The answer comes from a proxy.
        return HearthError(response.code, "http_error", f"HTTP status {response.code}",
                           response.code in (429, 502, 503))
    code = str(body.get("code", ""))
    # The attempt before still runs. Ask again for its answer.
    retryable = bool(body.get("retryable")) or code == "call_in_progress"
    return HearthError(response.code, code, body["error"], retryable)


def _retry_after(response: urllib.error.HTTPError) -> float:
    try:
        return min(max(float(response.headers.get("Retry-After", "0")), 0.0), 60.0)
    except ValueError:
        return 0.0
